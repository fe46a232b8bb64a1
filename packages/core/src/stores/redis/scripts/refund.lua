-- Refunds units to the window or bucket they were taken from, never below zero: the input goes on with policy, units and
-- for each of KEYS what its counter held when they had been taken: start, current and previous count. What has passed, or
-- is none of ours, is left alone. Answers { now }.

if untilMs > 0 and nowMs > untilMs then return { nowMs } end

for i = 1, #KEYS do
  local policy, units = policies[nextNumber()], nextNumber()
  local afterMs, afterCurrent, afterPrevious = nextNumber(), nextNumber(), nextNumber()
  local startMs, previous, current, isBack, parts = readState(KEYS[i], policy)
  if startMs then
    -- A charge leads no further than to the largest number that is exact; two windows may hold more than that.
    units = max(units, min(0, previous + current - LARGEST))
    local start, before, now, text =
      withoutUnits(policy, startMs, previous, current, parts, units, afterMs, afterCurrent, afterPrevious)
    if start then
      writeState(KEYS[i], policy, start, before, now, text)
    elseif isBack then
      writeState(KEYS[i], policy, startMs, previous, current, parts)
    else
      keepState(KEYS[i], policy, startMs, previous, current)
    end
  end
end
return { nowMs, 1 }
