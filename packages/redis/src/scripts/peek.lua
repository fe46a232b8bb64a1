-- Returns the current states of counters. The rest of the input contains the policy of each of KEYS. Takes no units,
-- and writes only if the clock went back or the limit changed. Returns { now, one state per key }. The state is 0 if
-- these scripts did not write the key's value.

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
