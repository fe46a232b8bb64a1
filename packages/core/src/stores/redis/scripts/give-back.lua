-- Gives units back to the window they were taken in, never below zero: the input goes on with policy, units and the
-- start of that window for each of KEYS. What has passed, or is none of ours, is left alone. Answers { now }.

if untilMs > 0 and nowMs > untilMs then return { nowMs } end

for i = 1, #KEYS do
  local policy, units, takenInMs = policies[nextNumber()], nextNumber(), nextNumber()
  local startMs, previous, current, isBack = readState(KEYS[i], policy)
  local isPresent = startMs and takenInMs == startMs
  local isPrevious = startMs and policy.kind == SLIDING and takenInMs == startMs - policy.windowMs
  if isPresent then current = max(0, current - units) end
  if isPrevious then previous = max(0, previous - units) end
  if isBack or isPresent or isPrevious then writeState(KEYS[i], policy, startMs, previous, current) end
end
return { nowMs, 1 }
