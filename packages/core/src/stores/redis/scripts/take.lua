-- Takes the units of each request, or none of them. The input goes on with the number of entries, and each entry is
--   times, keys, policy, cost            for each of so many keys so many equal requests of one check, granted in order
--   0, checks, requests,                 so many requests of several checks, each request all or nothing
--     then policy, cost, shadow for each check
-- and KEYS has the key of each check. Answers { now, a state a key } and then, for each key of which not every unit was
-- taken, its number and how many times its check was. Of a request that is refused that is so for every key. The state
-- of a key that holds what is none of ours is 0. Nothing is counted after `untilMs`: { now }.

if untilMs > 0 and nowMs > untilMs then return { nowMs } end

-- Most calls need no more than INCRBY: the functions of the rest are made when they are called for.
local withLook, afterAll, together
local function beCareful()
  if not together then withLook, afterAll, together = functions() end
end

local pcall, keys = redis.pcall, KEYS
local answer, lacks, read = { nowMs }, nil, 0
local function lack(key, times)
  lacks = lacks or {}
  lacks[#lacks + 1] = key
  lacks[#lacks + 1] = times
end

-- Writes the first units of a client with the time to live that a key made by INCRBY does not have.
local function create(key, policy, units)
  local value = policy.base + units
  local endsMs = policy.alignedMs + (policy.kind == SLIDING and 2 or 1) * policy.windowMs
  redis.call("SET", key, integer(value), "PX", integer(endsMs - nowMs))
  return value
end

-- Takes every check of a request, whose keys come after those that were read, with one INCRBY each; or undoes them all
-- where that is not enough, the last first, since two checks may have one key.
local function takeInPlace(checks)
  for i = 1, #checks do
    local check, key = checks[i], keys[read + i]
    local policy, value = check.policy, pcall("INCRBY", key, check.text)
    check.isNew = value == check.cost
    if check.isNew then
      -- There was no such key, or one that held 0.
      value = create(key, policy, check.cost)
    else
      local isNumber = type(value) == "number"
      local rest = isNumber and value - policy.base or -1
      local current = rest % PREVIOUS
      if not (rest > 0 and rest < WINDOW and current > check.cost and
        floor((rest - current) / PREVIOUS * policy.leftMs / policy.windowMs) + current <= policy.limit) then
        if isNumber then redis.call("DECRBY", key, check.text) end
        for undone = i - 1, 1, -1 do
          if checks[undone].isNew then
            redis.call("DEL", keys[read + undone])
          else
            redis.call("DECRBY", keys[read + undone], checks[undone].text)
          end
        end
        return false
      end
    end
    answer[read + i + 1] = value
  end
  return true
end

local function takeWithCare(checks)
  beCareful()
  for i, check in ipairs(checks) do
    check.key, check.isTaken, check.current = keys[read + i], nil, nil
  end
  together(checks)
  for i, check in ipairs(checks) do
    answer[read + i + 1] = check.told
    if not check.isTaken then lack(read + i, 0) end
  end
end

for _ = 1, nextNumber() do
  local times, count = nextNumber(), nextNumber()
  if times > 0 then
    local policy, cost = policies[nextNumber()], nextNumber()
    local limit, windowMs, base, units = policy.limit, policy.windowMs, policy.base, cost * times
    local isQuick = cost > 0 and cost <= limit and policy.packs and units <= MOST_PACKED
    local text = integer(units)
    local leftMs = policy.leftMs
    -- Up to here there is no previous count, and room for all of the present one.
    local full = base + limit
    for i = read + 1, read + count do
      if isQuick then
        local value = quickValue or pcall("INCRBY", keys[i], text)
        local isNumber = type(value) == "number"
        if not (isNumber and value > base and value <= full) then
          local rest = isNumber and leftMs and value - base or -1
          local current = rest % PREVIOUS
          -- The first units of a window after those of another one change when the key ends.
          local hasRoom = rest > 0 and rest < WINDOW and current > units and
            floor((rest - current) / PREVIOUS * leftMs / windowMs) + current <= limit
          if value == units then
            -- There was no such key, or one that held 0.
            local granted = min(times, floor(limit / cost))
            value = create(keys[i], policy, granted * cost)
            if granted < times then lack(i, granted) end
          elseif not hasRoom then
            beCareful()
            local granted
            value, granted = afterAll(keys[i], policy, cost, times, value)
            if granted < times then lack(i, granted) end
          end
        end
        answer[i + 1] = value
      else
        beCareful()
        local state, granted = withLook(keys[i], policy, cost, times)
        if granted < times then lack(i, granted) end
        answer[i + 1] = state
      end
    end
    read = read + count
  else
    local checks, isQuick = {}, true
    local requests = nextNumber()
    for i = 1, count do
      local policy, cost = policies[nextNumber()], nextNumber()
      checks[i] = { policy = policy, cost = cost, text = integer(cost), shadow = nextNumber() == 1 }
      isQuick = isQuick and cost > 0 and cost <= policy.limit and policy.packs and policy.leftMs
    end
    for _ = 1, requests do
      if not (isQuick and takeInPlace(checks)) then takeWithCare(checks) end
      read = read + count
    end
  end
end

if lacks then
  for i = 1, #lacks do answer[read + 1 + i] = lacks[i] end
end
return answer
