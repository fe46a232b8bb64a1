-- Refunds units to a counter of any kind. Does not change the key if the units have passed, or if these scripts did
-- not write its value.
return function(key, policy, units, afterMs, afterCurrent, afterPrevious)
  local startMs, previous, current, isBack, parts = readState(key, policy)
  if not startMs then return end
  -- A charge cannot raise the count above the largest exact number. Two windows together may already contain more
  -- units.
  units = max(units, min(0, previous + current - LARGEST))
  local start, before, now, text =
    withoutUnits(policy, startMs, previous, current, parts, units, afterMs, afterCurrent, afterPrevious)
  if start then
    writeState(key, policy, start, before, now, text)
  elseif isBack then
    writeState(key, policy, startMs, previous, current, parts)
  else
    keepState(key, policy, startMs, previous, current)
  end
end
