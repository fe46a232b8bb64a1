-- Refunds units to the window or bucket that they were taken from, but never below zero. The input continues, for each
-- of KEYS, with the policy, the units, and the counter after they were taken: start, current and previous count.
-- Leaves a key alone if the units have passed, or if these scripts did not write its value. Returns { now, 1 }, or
-- { now } after `untilMs`.

if untilMs > 0 and nowMs > untilMs then return { nowMs } end

for i = 1, #KEYS do
  local policy, units = policies[nextNumber()], nextNumber()
  local afterMs, afterCurrent, afterPrevious = nextNumber(), nextNumber(), nextNumber()
  local startMs, previous, current, isBack, parts = readState(KEYS[i], policy)
  if startMs then
    -- A charge stops at the largest exact number; two windows may already hold more than that.
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
