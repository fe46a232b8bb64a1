-- Takes all units of each request, or none. The rest of the input begins with the number of entries. There are two
-- kinds of entries:
--   times, keys, policy, cost            `times` equal requests of one check for each of `keys` keys, granted in order.
--   0, checks, requests,                 `requests` requests of several checks, each request all or nothing.
--     then policy, cost, shadow for each check.
-- KEYS contains the key of each check. Returns { now, one state per key }, followed by two numbers for each key that
-- did not get all of its units. The two numbers are the key's number and how many times its check was granted. A
-- refused request of several checks lists all of its keys. The state is 0 if these scripts did not write the key's
-- value. A state of the current window is sent without its code, because a short number is sent and parsed faster.
-- After `untilMs`, counts nothing and returns { now }.

-- Most calls need only INCRBY, so the functions of the slow path are created on first use.
local withLook, afterAll, together, afterHash
local function beCareful()
  if not together then withLook, afterAll, together, afterHash = functions() end
end

local pcall, keys = redis.pcall, KEYS
local answer, lacks, read = quickAnswer or { nowMs }, nil, 0
local function lack(key, times)
  lacks = lacks or {}
  lacks[#lacks + 1] = key
  lacks[#lacks + 1] = times
end

-- Takes the units of `times` equal requests from a strict window if HINCRBY alone was not enough. `value` is the
-- result of HINCRBY. Returns the state and the number of granted requests. If all requests are granted, the state may
-- be only the number in the hash.
local function takeInHash(key, policy, cost, times, value)
  local units, limit = cost * times, policy.limit
  if type(value) == "number" then
    local begun = value > STRICT_CODE and beginNext(key, policy, value - units, units)
    if begun then return begun, times end
    -- The key did not exist.
    if value == units and orForget(key, "n", "HLEN", key) == 1 then
      local granted = min(times, floor(limit / cost))
      value = policy.strictBase + granted * cost
      orForget(key, "n", "HSET", key, "n", integer(value))
      orForget(key, "n", "PEXPIRE", key, strictLasts(policy))
      return value, granted
    end
  end
  beCareful()
  return afterHash(key, policy, cost, times, value)
end

-- Takes every check of a request with one INCRBY, and one SET for each window that begins. If that is not enough,
-- undoes all of these commands and returns false. The request's keys follow the first `read` keys. SET immediately
-- follows the INCRBY that creates a key, because the key would stay without a TTL if a later command failed.
local function takeInPlace(checks)
  local made, befores
  for i = 1, #checks do
    local check, key = checks[i], keys[read + i]
    local policy, units = check.policy, check.cost
    local kind, base, limit, leftMs, windowMs = policy.kind, policy.base, policy.limit, policy.leftMs, policy.windowMs
    local value = pcall("INCRBY", key, check.text)
    -- USE window-fits
    if not fits then
      if value == units then
        made = made or {}
        made[i], rest, fits = true, begin(key, policy, 0, units), true
      else
        local before, counted = previousOf(key, policy, value, units)
        fits = before and counted + units <= limit
        -- Two checks of the same counter must not both begin the window.
        for earlier = 1, i - 1 do fits = fits and keys[read + earlier] ~= key end
        befores = befores or {}
        befores[i] = before
      end
      if not fits then
        for undone = type(value) == "number" and i or i - 1, 1, -1 do
          if made and made[undone] then
            redis.call("DEL", keys[read + undone])
          else
            redis.call("DECRBY", keys[read + undone], checks[undone].text)
          end
        end
        return false
      end
    end
    answer[read + i + 1] = rest
  end
  if befores then
    for i, before in pairs(befores) do
      answer[read + i + 1] = begin(keys[read + i], checks[i].policy, before, checks[i].cost)
    end
  end
  return true
end

local function takeWithCare(checks)
  beCareful()
  for i, check in ipairs(checks) do
    check.key, check.isTaken = keys[read + i], nil
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
    local limit, windowMs, units = policy.limit, policy.windowMs, cost * times
    local kind, base, leftMs, strictBase = policy.kind, policy.base, policy.leftMs, policy.strictBase
    local isQuick = cost > 0 and cost <= limit and policy.packs and units <= MOST_PACKED
    local isQuickHash = cost > 0 and cost <= limit and policy.countsInHash and units <= MOST_STRICT
    local text = integer(units)
    for i = max(read, quickDone) + 1, read + count do
      local state, granted = nil, times
      if isQuick then
        local value = quickValue or pcall("INCRBY", keys[i], text)
        -- USE window-fits
        state = rest
        if not fits then
          local previous, counted = previousOf(keys[i], policy, value, units)
          granted = previous and min(times, floor((limit - counted) / cost)) or 0
          if granted > 0 then
            state = begin(keys[i], policy, previous, granted * cost)
          else
            beCareful()
            state, granted = afterAll(keys[i], policy, cost, times, value)
          end
        end
      elseif isQuickHash then
        local value = quickValue or pcall("HINCRBY", keys[i], "n", text)
        -- USE strict-fits
        state = value
        if not fits then state, granted = takeInHash(keys[i], policy, cost, times, value) end
      else
        beCareful()
        state, granted = withLook(keys[i], policy, cost, times)
      end
      quickValue, answer[i + 1] = nil, state
      if granted < times then lack(i, granted) end
    end
    read = read + count
  else
    local checks, isQuick = {}, true
    local requests = nextNumber()
    for i = 1, count do
      local policy, cost = policies[nextNumber()], nextNumber()
      checks[i] = {
        policy = policy,
        cost = cost,
        text = integer(cost),
        shadow = nextNumber() == 1,
      }
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
