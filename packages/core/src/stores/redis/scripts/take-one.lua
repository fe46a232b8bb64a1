-- The quickest way for a call of one check that can be counted in place. ARGV has the time until when it counts, the
-- length of the window, the limit, the units, the kind of counter, how many equal requests of which cost they are for, in how
-- many sub-windows and, if it is given, the time; what is done here goes on below where that is not enough.

if ARGV[2] then
  quickNowMs = tonumber(ARGV[9])
  if not quickNowMs then
    local time = redis.call("TIME")
    quickNowMs = time[1] * 1000 + floor(time[2] / 1000)
  end
  local quickUntilMs = tonumber(ARGV[1])
  if quickUntilMs > 0 and quickNowMs > quickUntilMs then return { quickNowMs } end
  local limit, windowMs, units = tonumber(ARGV[3]), tonumber(ARGV[2]), tonumber(ARGV[4])
  if tonumber(ARGV[5]) == STRICT then
    quickValue = redis.pcall("HINCRBY", KEYS[1], "n", ARGV[4])
    if type(quickValue) == "number" then
      local code = floor(quickNowMs / math.ceil(windowMs / tonumber(ARGV[8]))) % STRICT_CODES + 1
      local rest = quickValue - code * STRICT_CODE
      local current = rest % STRICT_SUM
      -- The first units of a sub-window change when the key ends.
      local isQuick = rest > 0 and rest < STRICT_CODE and current > units
      if isQuick and (rest - current) / STRICT_SUM % (MOST_STRICT + 1) + current <= limit then
        return { quickNowMs, quickValue }
      end
    end
  else
    quickValue = redis.pcall("INCRBY", KEYS[1], ARGV[4])
    if type(quickValue) == "number" then
      local elapsedMs = quickNowMs % windowMs
      local rest = quickValue - ((quickNowMs - elapsedMs) / windowMs % CODES + 1) * WINDOW
      local current = rest % PREVIOUS
      -- The first units of a window after those of another one change when the key ends.
      if rest > 0 and rest < WINDOW and current > units then
        local weighted = floor((rest - current) / PREVIOUS * (windowMs - elapsedMs) / windowMs)
        if weighted + current <= limit then return { quickNowMs, rest } end
      end
    end
  end
end
