-- Refunds units to the window or bucket from which they were taken. The count never falls below zero. For each run of
-- equal refunds, the rest of the input contains the number of keys, the policy, the units, and the counter's start,
-- current and previous count after the units were taken. Returns { now, 1 }, or { now } after `untilMs`. Begins after the
-- keys that refund-quick.lua has refunded.

-- Runs a command that deletes the key or field that INCRBY or HINCRBY has just created. If the Redis user may not run
-- this command, makes the key expire immediately. `isAlone` is false if the key contains other fields, which must
-- remain.
local function uncreate(isAlone, command, key, field)
  local reply = field and redis.pcall(command, key, field) or redis.pcall(command, key)
  if type(reply) ~= "table" then return end
  if isAlone then redis.pcall("PEXPIRE", key, 1) end
  error(reply.err, 0)
end

-- Refunds `units` of a window with one INCRBY, or begins a window with a charge or with renewed permits. If this is not
-- possible, returns false and changes nothing. `value` is the result of INCRBY if refund-quick.lua has run it.
local function refundInPlace(key, policy, units, afterMs, value)
  local kind, base, windowMs, alignedMs = policy.kind, policy.base, policy.windowMs, policy.alignedMs
  -- USE refund-added
  if not added then return false end
  local text = integer(added)
  value = value or redis.pcall("INCRBY", key, text)
  if type(value) ~= "number" then return false end
  -- USE refund-fits
  if fits then return true end
  if units < 0 and (place == 1 or kind == IN_FLIGHT) then
    local previous = previousOf(key, policy, value, added)
    if previous then
      begin(key, policy, kind == IN_FLIGHT and max(0, previous + units) or previous, -units)
      return true
    end
  end
  if value == added then uncreate(true, "DEL", key) else redis.call("DECRBY", key, text) end
  return false
end

-- Does the same as `refundInPlace` in the hash of a strict window, with one HINCRBY.
local function refundInHash(key, policy, units, afterMs)
  if afterMs ~= policy.alignedMs then return false end
  local added, text = -units, integer(-units)
  local value = redis.pcall("HINCRBY", key, "n", text)
  if type(value) ~= "number" then return false end
  local rest = value - policy.strictBase
  local current = rest % STRICT_SUM
  if rest > 0 and rest < STRICT_CODE and current > max(0, added) and current <= MOST_STRICT then return true end
  if value == added then
    local isAlone = orForget(key, "n", "HLEN", key) == 1
    if added > 0 and isAlone then
      orForget(key, "n", "HSET", key, "n", integer(policy.strictBase + added))
      orForget(key, "n", "PEXPIRE", key, strictLasts(policy))
      return true
    end
    uncreate(isAlone, "HDEL", key, "n")
    return false
  end
  if added > 0 and value > STRICT_CODE and beginNext(key, policy, value - added, added) then return true end
  redis.call("HINCRBY", key, "n", integer(units))
  return false
end

-- Create these functions on first use, because most refunds need only INCRBY.
local refundSlowly
local read = 0
while read < #KEYS do
  local count, policy, units = nextNumber(), policies[nextNumber()], nextNumber()
  local afterMs, afterCurrent, afterPrevious = nextNumber(), nextNumber(), nextNumber()
  for i = max(read, quickDone) + 1, read + count do
    local key, isDone = KEYS[i], false
    if policy.kind <= FIXED then
      isDone = not isWide and units <= MOST_PACKED and -units <= MOST_PACKED and
        refundInPlace(key, policy, units, afterMs, quickValue)
      quickValue = nil
    elseif policy.isHash then
      isDone = units <= MOST_STRICT and -units <= MOST_STRICT and refundInHash(key, policy, units, afterMs)
    end
    if not isDone then
      refundSlowly = refundSlowly or functions()
      refundSlowly(key, policy, units, afterMs, afterCurrent, afterPrevious)
    end
  end
  read = read + count
end
return { nowMs, 1 }
