-- The quickest way for a call of one check that can be counted in place. ARGV has the time until when it counts, the
-- length of the window, the limit, the units, the kind of counter, how many equal requests of which cost they are for, in how
-- many sub-windows and, if it is given, the time. If it is not enough, the rest goes on with the value that was made.

if untilMs > 0 and nowMs > untilMs then return { nowMs } end

if ARGV[2] then
  local limit, windowMs, units = tonumber(ARGV[3]), tonumber(ARGV[2]), tonumber(ARGV[4])
  if tonumber(ARGV[5]) == STRICT then
    local stepMs = math.ceil(windowMs / tonumber(ARGV[8]))
    -- USE strict-base
    local value = redis.pcall("HINCRBY", KEYS[1], "n", ARGV[4])
    -- USE strict-fits
    if fits then return { nowMs, value } end
    quickValue = value
  else
    -- USE window-base
    local value = redis.pcall("INCRBY", KEYS[1], ARGV[4])
    -- USE window-fits
    if fits then return { nowMs, rest } end
    quickValue = value
  end
end
