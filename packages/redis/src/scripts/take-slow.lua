-- Takes units when one INCRBY is not enough.

local function isSame(state, other)
  for i = 1, 4 do
    if state[i] ~= other[i] then return false end
  end
  return true
end

-- Takes units from the `value` of a key that has sub-windows before the current one: the short path for the usual
-- case. Returns the new value and the number of granted requests, or nothing if the short path does not apply.
local function takeFromSubWindows(policy, key, value, cost, times)
  local start, before, now, parts = string.match(value, WITH_PARTS)
  if not start or not areParts(policy, parts) then return end
  policy.alignedText = policy.alignedText or integer(policy.alignedMs)
  local previous, current, isSame = tonumber(before), tonumber(now), start == policy.alignedText
  local startMs, _ = policy.alignedMs, nil
  if current > LARGEST or (not isSame and previous ~= sumOf(parts)) then return end
  if not isSame then
    startMs = tonumber(start)
    if startMs > policy.alignedMs or fmod(startMs, policy.stepMs) ~= 0 then return end
    startMs, previous, current, _, parts = subWindowsNow(policy, startMs, previous, current, parts)
    if parts == "" then return end
  end
  local granted = min(times, floor(remaining(policy, startMs, previous, current, parts) / cost))
  -- Within a sub-window, add up the parts only if they would cause a refusal.
  if isSame and granted < times and previous ~= sumOf(parts) then return end
  if granted == 0 and isSame then return value, 0 end
  local units = granted * cost
  piecesOf[key] = nil
  value = "w:" .. policy.alignedText .. ":" .. plain(previous) .. ":" .. plain(current + units) .. ":" .. parts
  if granted == 0 then return value, 0 end
  if isSame and current > 0 then
    redis.call("SET", key, value, "KEEPTTL")
  else
    redis.call("SET", key, value, "PX", subWindowsEndMs(policy, startMs, units, parts) - nowMs)
  end
  return value, granted
end

-- Takes units after reading the key. Returns the state and the number of granted requests. The state is 0 if these
-- scripts did not write the key's value.
local function takeWithLook(key, policy, cost, times)
  local isText = (policy.kind == BUCKETED or policy.kind == STRICT) and not policy.isHash
  local value = isText and redis.pcall("GET", key) or nil
  if type(value) == "string" and cost > 0 and not policy.countsRejected then
    local toldNow, granted = takeFromSubWindows(policy, key, value, cost, times)
    if toldNow then return toldNow, granted end
  end
  local startMs, previous, current, isBack, parts, endsAsBefore = readState(key, policy, value)
  if not startMs then return 0, 0 end
  local granted = times
  if cost > 0 then granted = min(times, floor(remaining(policy, startMs, previous, current, parts) / cost)) end
  if granted < times and not isSoundRefusal(policy, startMs, current, parts) then return 0, 0 end
  if granted > 0 then startMs, current, parts = withUnits(policy, startMs, current, parts, granted * cost) end
  local isWritten = isBack or granted * cost > 0
  -- Requests whose refusals count are never merged, so there is only one request here.
  if policy.countsRejected and granted < times and cost <= policy.limit then
    local before = { startMs, previous, current, parts }
    startMs, previous, current, parts = withRejected(policy, startMs, previous, current, parts, cost)
    isWritten = isWritten or not isSame(before, { startMs, previous, current, parts })
  end
  local value = isWritten and writeState(key, policy, startMs, previous, current, parts, endsAsBefore)
  if not isWritten then keepState(key, policy, startMs, previous, current) end
  return value or told(policy, startMs, previous, current, parts), granted
end

-- Takes units after INCRBY, which failed or produced `value` from a key that already existed.
local function takeAfterAll(key, policy, cost, times, value)
  local units = cost * times
  if type(value) == "table" then
    -- If the value is not an integer, or the sum would overflow, the key is unchanged. Any other error means that
    -- Redis cannot write, so repeat the command to raise the error.
    if not (string.find(value.err, "WRONGTYPE") or string.find(value.err, "not an integer") or
      string.find(value.err, "overflow")) then redis.call("INCRBY", key, units) end
    return takeWithLook(key, policy, cost, times)
  end
  local rest = value - policy.base
  local current = rest % PREVIOUS
  -- A current count that does not fit overflows into the previous count.
  if rest >= 0 and rest < WINDOW and value <= LARGEST and current >= units and current - units <= MOST_PACKED then
    local previous = (rest - current) / PREVIOUS
    local room = remaining(policy, policy.alignedMs, previous, current - units)
    local granted = min(times, floor(room / cost))
    local over = (times - granted) * cost
    if current == units and granted > 0 then
      -- All units of this window had been refunded, so write a new TTL. Otherwise the key would expire when the
      -- previous window no longer counts.
      writeState(key, policy, policy.alignedMs, previous, current - over)
    elseif over > 0 then
      redis.call("DECRBY", key, over)
    end
    return value - over, granted
  end
  redis.call("DECRBY", key, units)
  return takeWithLook(key, policy, cost, times)
end

-- Takes units after HINCRBY, which failed or produced `value` from a strict window's key that already existed.
local function takeAfterHash(key, policy, cost, times, value)
  local units = cost * times
  if type(value) == "table" then
    if not (string.find(value.err, "WRONGTYPE") or string.find(value.err, "not an integer") or
      string.find(value.err, "overflow")) then redis.call("HINCRBY", key, "n", units) end
    return takeWithLook(key, policy, cost, times)
  end
  local startMs, previous, current, isBack, parts, endsAsBefore = readState(key, policy, nil, units)
  local granted = startMs and min(times, floor(remaining(policy, startMs, previous, current, parts) / cost)) or 0
  if granted > 0 or isBack then
    current = current + granted * cost
    local text, number = writeState(key, policy, startMs, previous, current, parts, endsAsBefore)
    if number and granted == times then return number, granted end
    return text or told(policy, startMs, previous, current, parts), granted
  end
  if redis.call("HINCRBY", key, "n", -units) == 0 then redis.call("HDEL", key, "n") end
  return startMs and told(policy, startMs, previous, current, parts) or 0, 0
end

-- Counts refused units under policies that count refusals: the twin of statesAfterRefusal in
-- src/stores/take-together.ts. All checks of the same counter share one state.
local function countRefusals(checks)
  local states = {}
  for i, check in ipairs(checks) do
    local policy, refused = check.policy, check.policy.countsRejected and check
    -- A penalty counts the refusals of the rule whose check precedes it.
    if policy.kind == PENALTY then refused = checks[i - 1] end
    local isRefused = refused and not check.shadow and not refused.shadow and refused.cost <= refused.policy.limit
    -- Count the refusal only if this check itself refuses now and its cost could fit later.
    if isRefused and refused.cost > remaining(refused.policy, unpack(refused.before, 1, 4)) then
      local before = states[check.key] or check.before
      local startMs, previous, current, parts = unpack(before, 1, 4)
      local after = { withRejected(policy, startMs, previous, current, parts, check.cost) }
      if not isSame(before, after) then
        states[check.key] = after
        writeState(check.key, policy, unpack(after, 1, 4))
      end
    end
  end
  for _, check in ipairs(checks) do
    if not states[check.key] then keepState(check.key, check.policy, unpack(check.before, 1, 3)) end
    check.before = states[check.key] or check.before
  end
end

-- Takes the checks of one request, all or nothing. Sets `isTaken` and the state to return of each check. Each check
-- counts the units of earlier checks of the same counter. For that, `seen` contains the last check that took units,
-- by key.
local function takeTogether(checks)
  local seen, isGranted, isBroken = {}, true, false
  for _, check in ipairs(checks) do
    local policy = check.policy
    local startMs, previous, current, isBack, parts = readState(check.key, policy)
    check.before = { startMs, previous, current, parts }
    check.after = seen[check.key] and seen[check.key].after or check.before
    if not startMs then
      isBroken = true
    else
      if isBack then writeState(check.key, policy, startMs, previous, current, parts) end
      if isGranted then
        startMs, previous, current, parts = unpack(check.after, 1, 4)
        check.isTaken = check.cost == 0 or check.cost <= remaining(policy, startMs, previous, current, parts)
        if not check.isTaken and not isSoundRefusal(policy, startMs, current, parts) then
          isBroken, check.before, check.after = true, {}, {}
        end
        if check.isTaken then
          startMs, current, parts = withUnits(policy, startMs, current, parts, check.cost)
          check.after = { startMs, previous, current, parts }
          -- A penalty that admits a request counts nothing.
          if check.cost > 0 and policy.kind ~= PENALTY then seen[check.key] = check end
        elseif not check.shadow then
          isGranted = false
        end
      end
    end
  end
  isGranted = isGranted and not isBroken
  if isGranted then
    for key, check in pairs(seen) do writeState(key, check.policy, unpack(check.after, 1, 4)) end
    for _, check in ipairs(checks) do
      if not seen[check.key] then keepState(check.key, check.policy, unpack(check.after, 1, 3)) end
    end
  elseif not isBroken then
    countRefusals(checks)
  end
  for _, check in ipairs(checks) do
    local state = isGranted and check.after or check.before
    check.told = state[1] and told(check.policy, unpack(state, 1, 4)) or 0
    check.isTaken = isGranted and check.isTaken
  end
end

return takeWithLook, takeAfterAll, takeTogether, takeAfterHash
