-- Reads and writes counters, and computes how many units they admit. The results match src/algorithms to the unit and
-- the millisecond.

-- Returns floor(count * part / whole), exactly, for any count below 2^53.
local function share(count, part, whole)
  local product = count * part
  if product <= LARGEST then return floor(product / whole) end
  return floor(count / whole) * part + floor(fmod(count, whole) * part / whole)
end

-- Returns the previous window's share of the sliding window: floor(P * (W - e) / W). Uses whole seconds instead of
-- milliseconds if the product in milliseconds would not be exact.
local function weighted(policy, previous, windowMs, elapsedMs)
  if previous == 0 then return 0 end
  local unitMs = 1
  if max(previous, policy.limit) * windowMs > LARGEST then
    unitMs = 1000 * math.ceil(windowMs / 1000 / WIDEST_WINDOW)
  end
  local window = math.ceil(windowMs / unitMs)
  return share(previous, window - floor(elapsedMs / unitMs), window)
end

local function used(policy, startMs, previous, current, parts)
  local kind = policy.kind
  if kind == SLIDING then return current + weighted(policy, previous, policy.windowMs, nowMs - startMs) end
  if kind == STRICT or kind == IN_FLIGHT then return current + previous end
  -- The previous count is the units that are granted in addition to the limit.
  if kind == CALENDAR then return current - previous end
  if kind == LEVEL then return current + (previous > 0 and 1 or 0) end
  if kind == BUCKETED then
    local oldest = oldestOf(policy, parts)
    return current + previous - oldest + weighted(policy, oldest, policy.stepMs, nowMs - startMs)
  end
  return current
end

local function remaining(policy, startMs, previous, current, parts)
  if policy.kind == PENALTY then return isBlocked(previous, current) and 0 or LARGEST end
  return max(0, policy.limit - used(policy, startMs, previous, current, parts))
end

local WITH_PARTS = "^w:(%d+):(%d+):(%d+):([1-9][0-o]+)$"

-- Returns the window's start, previous and current count, and parts of a stored value. Returns nothing if these scripts
-- did not write the value.
local function unpackValue(key, policy, value)
  local kind = policy.kind
  local hasParts = kind >= BUCKETED and kind ~= PENALTY
  local startMs, previous, current, parts
  if hasParts then
    startMs, previous, current, parts = string.match(value, WITH_PARTS)
    if startMs and not areParts(policy, parts) then return end
  end
  if not startMs then startMs, previous, current = string.match(value, "^w:(%d+):(%d+):(%d+)$") end
  if startMs then
    startMs, previous, current, parts = tonumber(startMs), tonumber(previous), tonumber(current), parts or ""
    local isSound = startMs <= LARGEST and previous <= LARGEST and current <= LARGEST
    if policy.stepMs > 1 then isSound = isSound and fmod(startMs, policy.stepMs) == 0 end
    if kind == LEVEL then
      -- A bucket may owe any number of units (see `mostInUse`), so `current` is not limited here.
      isSound = isSound and previous <= policy.windowMs
    elseif kind == BUCKETED or kind == STRICT then
      isSound = isSound and sumOf(parts) == previous
    elseif kind == PENALTY then
      isSound = isSound and isSoundPenalty(previous, current)
    elseif kind > SLIDING and kind ~= CALENDAR then
      -- The entries of a log are added up only when the log refuses, because a log may have thousands of entries: see
      -- `isSoundRefusal`.
      isSound = isSound and previous == 0 and (kind ~= LOG or (current > 0) == (parts ~= ""))
    end
    if not isSound then return end
    return startMs, previous, current, parts
  end
  local number = kind <= FIXED and string.find(value, "^%d+$") and tonumber(value)
  if not number or number < WINDOW or number > LARGEST or fmod(number, PREVIOUS) > MOST_PACKED then return end
  local back = fmod(policy.base / WINDOW - floor(number / WINDOW) + CODES, CODES)
  -- A key without a TTL was not written by these scripts, so its window may really be that old.
  local isLater = (back > FARTHEST_BACK and redis.call("PTTL", key) >= 0) or
    (back > 0 and outlives(key, policy.alignedMs, CODES / 2 * policy.windowMs))
  if isLater then back = back - CODES end
  return policy.alignedMs - back * policy.windowMs, fmod(floor(number / PREVIOUS), PREVIOUS), fmod(number, PREVIOUS)
end

local function wideValue(startMs, previous, current, parts)
  local value = "w:" .. plain(startMs) .. ":" .. plain(previous) .. ":" .. plain(current)
  return parts and parts ~= "" and value .. ":" .. parts or value
end

-- Returns the state packed into one integer, or nothing if it does not fit.
local function packedValue(policy, startMs, previous, current)
  if isWide or policy.kind > FIXED or previous >= PREVIOUS or current > MOST_PACKED then return end
  return (fmod(floor(startMs / policy.windowMs), CODES) + 1) * WINDOW + previous * PREVIOUS + current
end

-- Returns the state at the current time: start, previous and current count, whether the clock went back, and parts.
-- If the clock went back, the caller must write the state, even if nothing is granted. Otherwise every call would
-- have to correct the state again, and the state would stay ahead of the clock.
local function stateNow(policy, startMs, previous, current, parts)
  local kind, alignedMs, windowMs = policy.kind, policy.alignedMs, policy.windowMs
  if kind <= SLIDING then
    if startMs == alignedMs then return startMs, previous, current, false end
    if startMs > alignedMs and kind == IN_FLIGHT then
      local nextMs = alignedMs + windowMs
      if startMs <= nextMs then return startMs, previous, current, false end
      return nextMs, 0, min(previous + current, LARGEST), true
    end
    if startMs > alignedMs then return alignedMs, 0, min(previous + current, LARGEST), true end
    return alignedMs, alignedMs - startMs == windowMs and current or 0, 0, false
  end
  if kind == LEVEL then return levelNow(policy, startMs, previous, current) end
  if kind == PERIODIC then return periodicNow(policy, startMs, current) end
  if kind == LOG then return logNow(policy, startMs, current, parts) end
  if kind == PENALTY then return penaltyNow(policy, startMs, previous, current) end
  if kind >= BUCKETED then return subWindowsNow(policy, startMs, previous, current, parts) end
  if kind == CALENDAR then
    if current + previous == 0 or startMs < alignedMs then return alignedMs, 0, 0, false end
    if startMs <= nowMs then return startMs, previous, current, false end
    local nearestMs = min(startMs, policy.endsMs)
    return nearestMs, previous, current, nearestMs < startMs
  end
  if current == 0 or nowMs - startMs >= windowMs then return alignedMs, 0, 0, false end
  if startMs > nowMs then
    local nearestMs = min(startMs, alignedMs + windowMs)
    return nearestMs, previous, current, nearestMs < startMs
  end
  return startMs, previous, current, false
end

-- Returns the time at which the state becomes equal to an empty state. A key with permits always lasts for two windows,
-- so that counting in place never changes its expiry.
local function endMs(policy, startMs, previous, current, parts)
  local kind = policy.kind
  if kind == LEVEL then return levelEndMs(policy, startMs, previous, current) end
  if kind == PERIODIC then return periodicEndMs(policy, startMs, current) end
  if kind == LOG then return logEndMs(policy, startMs, parts or "") end
  if kind == PENALTY then return penaltyEndMs(policy, startMs, previous, current) end
  if kind >= BUCKETED then return subWindowsEndMs(policy, startMs, current, parts) end
  if kind == CALENDAR and current + previous > 0 then
    local _, endsMs = periodAt(policy.detail, policy.windowMs, startMs)
    return endsMs
  end
  if current > 0 or kind == IN_FLIGHT then return startMs + (kind <= SLIDING and 2 or 1) * policy.windowMs end
  return startMs + (previous > 0 and policy.windowMs or 0)
end

-- Returns the state for the reply. The state is one integer if it fits, and otherwise a string, because clients
-- misread integers near 2^53.
local function told(policy, startMs, previous, current, parts)
  return packedValue(policy, startMs, previous, current) or wideValue(startMs, previous, current, parts)
end

-- Writes the state with a TTL: the key expires when the state equals an empty state. `endsAsBefore` is true if the
-- key's current expiry is known to be correct. Returns the state for the reply. For a hash, returns nil and the
-- number in the hash.
local function writeState(key, policy, startMs, previous, current, parts, endsAsBefore)
  if fitsHash(policy, previous, current) and (previous > 0 or current > 0) then
    local endsMs = not (endsAsBefore and piecesOf[key]) and endMs(policy, startMs, previous, current, parts)
    return nil, writeHash(key, policy, startMs, previous, current, parts, endsMs)
  end
  local value = told(policy, startMs, previous, current, parts)
  piecesOf[key] = nil
  if previous == 0 and current == 0 then
    redis.call("DEL", key)
  elseif endsAsBefore then
    redis.call("SET", key, type(value) == "number" and integer(value) or value, "KEEPTTL")
  else
    local endsMs = endMs(policy, startMs, previous, current, parts)
    redis.call("SET", key, type(value) == "number" and integer(value) or value, "PX",
      integer(min(max(1, endsMs - nowMs), LARGEST)))
  end
  return value
end

-- Returns the value of a key: a string or, for a strict window, the first fields of a hash. The key may contain a
-- string although a hash is expected, or the reverse, because the limit may have changed.
local function look(key, policy)
  if not policy.isHash then
    local value = redis.pcall("GET", key)
    if policy.kind ~= STRICT or type(value) ~= "table" then return value end
  end
  local fields = redis.pcall("HMGET", key, "n", "1", "2")
  return fields.err and policy.isHash and redis.pcall("GET", key) or fields
end

-- Extends the TTL of a key that is not written, so that the key does not expire before its state has passed. Only
-- buckets and penalties need this. Since the last write, the limit may have become lower, or the blocks longer.
local function keepState(key, policy, startMs, previous, current)
  local kind = policy.kind
  if (kind ~= LEVEL and kind ~= PERIODIC and kind ~= PENALTY) or (previous == 0 and current == 0) then return end
  local leftMs = min(endMs(policy, startMs, previous, current) - nowMs, LARGEST)
  if redis.call("PTTL", key) < leftMs then redis.call("PEXPIRE", key, integer(leftMs)) end
end

-- Returns the state of a key at the current time, in the form of `stateNow`. Returns nothing if these scripts did not
-- write the value. A value of 0 counts as a missing key, because INCRBY has the same result for both. The sixth value
-- is true if adding units does not change the key's expiry, because the same window or sub-window already contains
-- units. `got` is the result of GET if the caller has run it, and `added` is what HINCRBY has just added.
local function readState(key, policy, got, added)
  local value = type(got) == "string" and got or look(key, policy)
  local startMs, previous, current, parts
  if type(value) == "table" then
    if value.err then return end
    startMs, previous, current, parts = readHash(key, policy, value, added or 0)
    if startMs == nil then return end
    value = startMs and value
  end
  if not value or value == "0" then
    local startMs = policy.alignedMs
    if policy.kind == LEVEL then startMs = startMs - fmod(startMs, (scaleOf(policy, 0))) end
    return startMs, 0, 0, false, ""
  end
  if not startMs then startMs, previous, current, parts = unpackValue(key, policy, value) end
  if not startMs then return end
  local kind = policy.kind
  -- Writes set a new TTL for a calendar period, because its end changes with the anchor and the rules of its time zone.
  local isWindow = kind <= FIRST_HIT or kind == BUCKETED or kind == STRICT
  local start, before, now, isBack, text = stateNow(policy, startMs, previous, current, parts or "")
  if now < 0 then return end
  return start, before, now, isBack, text, isWindow and start == startMs and current > 0 and now > 0
end

-- Returns the start, current count and parts after taking more units at the current time.
local function withUnits(policy, startMs, current, parts, units)
  if policy.kind == PENALTY then return startMs, current, parts end
  if policy.kind == LOG then return logWith(policy, startMs, current, parts, units) end
  return startMs, current + units, parts
end

-- Returns the state after counting refused units. The current count grows, but not above the ceiling.
local function withRejected(policy, startMs, previous, current, parts, units)
  local kind, most = policy.kind, policy.limit
  if kind == PENALTY then return withRefusal(policy, startMs, previous, current) end
  if kind == IN_FLIGHT then return startMs, previous, current, parts end
  if kind == LOG then return logWithRejected(policy, startMs, current, parts, units) end
  if kind == CALENDAR then most = most + previous end
  -- Limit the count further, so that the sum of all sub-windows stays exact.
  if kind >= BUCKETED then most = min(most, LARGEST - previous) end
  -- Refused units fill the bucket. A full bucket never contains an additional fraction of a unit.
  if kind == LEVEL and current < most then previous = 0 end
  return startMs, previous, max(current, min(current + units, most)), parts
end

-- Returns the state without `units`; the `after…` values are the state after these units were taken. Returns nothing
-- if all of these units have passed.
local function withoutUnits(policy, startMs, previous, current, parts, units, afterMs, afterCurrent, afterPrevious)
  local kind = policy.kind
  if policy.grants then
    return startMs, max(0, min(previous + units, floor(LARGEST / 4))), current
  elseif kind == LEVEL then
    local rest, left = levelWithout(policy, startMs, previous, current, units, afterMs, afterPrevious, afterCurrent)
    if rest then return startMs, rest, left end
  elseif kind == PERIODIC then
    local left = afterCurrent - refilled(policy, afterMs, startMs)
    local tokens = max(0, left) - max(0, left - units)
    if tokens ~= 0 then return startMs, 0, min(mostInUse(policy), max(0, current - tokens)) end
  elseif kind == LOG then
    return logWithout(policy, startMs, current, parts, units, afterMs)
  elseif kind == PENALTY then
    return penaltyWithout(policy, startMs, previous, current, units)
  elseif kind >= BUCKETED then
    return withoutUnitsOf(policy, startMs, previous, current, parts, units, afterMs)
  elseif kind == IN_FLIGHT then
    -- A release or, with negative units, a renewal.
    local moved = math.abs(units)
    if afterMs >= startMs then
      current = max(0, current - moved)
    elseif afterMs == startMs - policy.windowMs then
      previous = max(0, previous - moved)
    elseif units >= 0 then
      return
    end
    return startMs, previous, units < 0 and current + moved or current
  elseif kind == FIRST_HIT and units < 0 and nowMs - afterMs < policy.windowMs then
    return current == 0 and min(afterMs, nowMs) or startMs, 0, current - units
  elseif afterMs == startMs or (kind == CALENDAR and areOfOnePeriod(policy, afterMs, startMs)) then
    return startMs, previous, max(0, current - units)
  elseif kind == SLIDING and afterMs == startMs - policy.windowMs then
    return startMs, max(0, previous - units), current
  end
end
