-- How units are taken where one INCRBY is not enough.

-- With a look at the key. Yields its state and the times granted; 0 is the state of what is none of ours.
local function takeWithLook(key, policy, cost, times)
  local startMs, previous, current, isBack = readState(key, policy)
  if not startMs then return 0, 0 end
  local granted = times
  if cost > 0 then granted = min(times, floor(remaining(policy, startMs, previous, current) / cost)) end
  current = current + granted * cost
  if isBack or granted * cost > 0 then writeState(key, policy, startMs, previous, current) end
  return told(policy, startMs, previous, current), granted
end

-- After INCRBY, which has made this `value` of a key that was there, or failed.
local function takeAfterAll(key, policy, cost, times, value)
  local units = cost * times
  if type(value) == "table" then
    -- No integer, or none that can be added to: it is as it was. Anything else means that nothing can be written.
    if not (string.find(value.err, "WRONGTYPE") or string.find(value.err, "not an integer") or
      string.find(value.err, "overflow")) then redis.call("INCRBY", key, units) end
    return takeWithLook(key, policy, cost, times)
  end
  local rest = value - policy.base
  if rest >= 0 and rest < WINDOW and value <= LARGEST then
    local current = rest % PREVIOUS
    local previous = (rest - current) / PREVIOUS
    local room = remaining(policy, policy.alignedMs, previous, current - units)
    local granted = min(times, floor(room / cost))
    local over = (times - granted) * cost
    if current == units and granted > 0 then
      -- All of this window had been given back, so the key would end with the previous one's share.
      writeState(key, policy, policy.alignedMs, previous, current - over)
    elseif over > 0 then
      redis.call("DECRBY", key, over)
    end
    return value - over, granted
  end
  redis.call("DECRBY", key, units)
  return takeWithLook(key, policy, cost, times)
end

-- The checks of one request, all or nothing; each gets its `told` state and `isTaken`. Checks of one counter see each
-- other's units, by `seen`.
local function takeTogether(checks)
  local seen, isGranted, isBroken = {}, true, false
  for _, check in ipairs(checks) do
    local policy, state = check.policy, seen[check.key]
    if not state then
      local startMs, previous, current, isBack = readState(check.key, policy)
      state = { policy = policy, startMs = startMs, previous = previous, current = current, before = current, isBack = isBack }
      seen[check.key] = state
    end
    check.state = state
    if not state.startMs then
      isBroken = true
    elseif isGranted then
      check.isTaken = check.cost == 0 or check.cost <= remaining(policy, state.startMs, state.previous, state.current)
      if check.isTaken then
        state.current = state.current + check.cost
      elseif not check.shadow then
        isGranted = false
      end
      check.current = state.current
    end
  end
  isGranted = isGranted and not isBroken
  for key, state in pairs(seen) do
    if not isGranted then state.current = state.before end
    if state.startMs and (state.isBack or state.current ~= state.before) then
      writeState(key, state.policy, state.startMs, state.previous, state.current)
    end
  end
  for _, check in ipairs(checks) do
    local state = check.state
    local current = isGranted and check.current or state.current
    check.told = state.startMs and told(check.policy, state.startMs, state.previous, current) or 0
    check.isTaken = isGranted and check.isTaken
  end
end

return takeWithLook, takeAfterAll, takeTogether
