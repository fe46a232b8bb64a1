-- The fastest path, for a call of one check that can be counted in place. If the check does not fit, the rest of the
-- script continues with the resulting value. ARGV has, in this order:
--   1. The time until which the call counts.
--   2. The window's length.
--   3. The limit.
--   4. The units.
--   5. The kind of counter.
--   6. The number of equal requests that the units are for.
--   7. The cost of each request.
--   8. The number of sub-windows.
--   9. The time to decide at, if it is given.

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
