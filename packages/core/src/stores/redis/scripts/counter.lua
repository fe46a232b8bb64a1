-- What a counter holds and what it admits: the twin of src/algorithms, to the unit and the millisecond.

-- floor(count * part / whole), exactly, for any count below 2^53.
local function share(count, part, whole)
  local product = count * part
  if product <= LARGEST then return floor(product / whole) end
  return floor(count / whole) * part + floor(fmod(count, whole) * part / whole)
end

-- The previous window's part in the sliding one: floor(P * (W - e) / W), in whole seconds where milliseconds are too
-- many for exact arithmetic.
local function weighted(policy, previous, elapsedMs)
  if previous == 0 then return 0 end
  local unitMs = 1
  if max(previous, policy.limit) * policy.windowMs > LARGEST then
    unitMs = 1000 * math.ceil(policy.windowMs / 1000 / WIDEST_WINDOW)
  end
  local window = math.ceil(policy.windowMs / unitMs)
  return share(previous, window - floor(elapsedMs / unitMs), window)
end

local function remaining(policy, startMs, previous, current)
  local used = current
  if policy.kind == SLIDING then used = used + weighted(policy, previous, nowMs - startMs) end
  return max(0, policy.limit - used)
end

-- Start of the window, previous and current count of a stored value; nothing for what no script of ours has written.
local function unpackValue(key, policy, value)
  local startMs, previous, current = string.match(value, "^w:(%d+):(%d+):(%d+)$")
  if startMs then return tonumber(startMs), tonumber(previous), tonumber(current) end
  local number = string.find(value, "^%d+$") and tonumber(value)
  if not number or number < WINDOW or number > LARGEST then return end
  local back = fmod(policy.base / WINDOW - floor(number / WINDOW) + CODES, CODES)
  -- One of the previous window ends with this one. A key that lives much longer is of a later window: the clock went
  -- back by very many. Half a window is more than two readings of the clock differ by.
  local isLater = back > FARTHEST_BACK or (back > 0 and givenNow < 0 and
    redis.call("PTTL", key) + nowMs - policy.alignedMs > 1.5 * policy.windowMs)
  if isLater then back = back - CODES end
  return policy.alignedMs - back * policy.windowMs, fmod(floor(number / PREVIOUS), PREVIOUS), fmod(number, PREVIOUS)
end

local function wideValue(startMs, previous, current)
  return "w:" .. integer(startMs) .. ":" .. integer(previous) .. ":" .. integer(current)
end

-- Nothing where the state does not fit.
local function packedValue(policy, startMs, previous, current)
  if isWide or policy.kind == FIRST_HIT or previous >= PREVIOUS or current > MOST_PACKED then return end
  return (fmod(floor(startMs / policy.windowMs), CODES) + 1) * WINDOW + previous * PREVIOUS + current
end

-- The state as it stands now. The fourth value tells that the clock went back: then it has to be written whatever is
-- granted, since a state that is brought back anew each time would stay ahead of the clock.
local function stateNow(policy, startMs, previous, current)
  local alignedMs, windowMs = policy.alignedMs, policy.windowMs
  if policy.kind == SLIDING then
    if startMs == alignedMs then return startMs, previous, current, false end
    if startMs > alignedMs then return alignedMs, 0, min(previous + current, LARGEST), true end
    return alignedMs, alignedMs - startMs == windowMs and current or 0, 0, false
  end
  if current == 0 or nowMs - startMs >= windowMs then return alignedMs, 0, 0, false end
  if startMs > nowMs then
    local nearestMs = min(startMs, alignedMs + windowMs)
    return nearestMs, previous, current, nearestMs < startMs
  end
  return startMs, previous, current, false
end

-- Writes the state with its time to live, in one command: the key ends when the state equals an empty one.
local function writeState(key, policy, startMs, previous, current)
  local endsMs = startMs
  if current > 0 then
    endsMs = startMs + (policy.kind == SLIDING and 2 or 1) * policy.windowMs
  elseif previous > 0 then
    endsMs = startMs + policy.windowMs
  end
  if previous == 0 and current == 0 then
    redis.call("DEL", key)
  else
    local packed = packedValue(policy, startMs, previous, current)
    local value = packed and integer(packed) or wideValue(startMs, previous, current)
    redis.call("SET", key, value, "PX", integer(max(1, endsMs - nowMs)))
  end
end

-- A state on its way out: one integer where it fits, else a text, since clients read integers near 2^53 wrongly.
local function told(policy, startMs, previous, current)
  return packedValue(policy, startMs, previous, current) or wideValue(startMs, previous, current)
end

-- The state of a key now and whether the clock went back; nothing when its value is none of ours. A 0 counts as no key,
-- here as in what INCRBY makes of it, which cannot tell them apart.
local function readState(key, policy)
  local value = redis.pcall("GET", key)
  if not value or value == "0" then return policy.alignedMs, 0, 0, false end
  if type(value) == "table" then return end
  local startMs, previous, current = unpackValue(key, policy, value)
  if startMs then return stateNow(policy, startMs, previous, current) end
end
