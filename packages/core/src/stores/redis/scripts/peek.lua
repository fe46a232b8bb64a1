-- What the counters hold now: the input goes on with a policy for each of KEYS. Takes nothing, and writes only what a
-- clock that went back, or another limit, makes necessary. Answers { now, a state a key }, 0 where the key holds what is none of ours.

local answer = { nowMs }
for i = 1, #KEYS do
  local policy = policies[nextNumber()]
  local startMs, previous, current, isBack, parts = readState(KEYS[i], policy)
  if isBack then
    writeState(KEYS[i], policy, startMs, previous, current, parts)
  elseif startMs then
    keepState(KEYS[i], policy, startMs, previous, current)
  end
  answer[i + 1] = startMs and told(policy, startMs, previous, current, parts) or 0
end
return answer
