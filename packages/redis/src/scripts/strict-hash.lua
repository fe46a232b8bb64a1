-- Stores the counter of a strict window in a hash, so that HINCRBY alone can count. The field `n` is the number that
-- layout.lua describes. The fields "1", "2" and so on contain the parts, split into pieces. Each piece is short
-- enough for Redis to store the hash in one block of memory.

-- Number of pieces of each key when it was last read or written; nil if the key was not a hash of a strict window.
local piecesOf = {}

-- Returns the `count` parts and the number of their pieces, or nothing if some parts are missing. The hash may still
-- have pieces that are no longer needed.
local function partsInHash(key, policy, count, first, second)
  if count == 0 then return not first and "" or nil, 0 end
  if not first or not string.find(first, "^[1-9]") then return end
  local length = 1 + count * parseDigits(first, 1, 1)
  local pieces = math.ceil(length / STRICT_PIECE)
  local parts = pieces > 1 and first .. (second or "") or first
  if pieces > 2 then
    local names = {}
    for i = 3, pieces do names[i - 2] = integer(i) end
    local rest = redis.call("HMGET", key, unpack(names))
    for i = 1, #names do parts = parts .. (rest[i] or "") end
  end
  if #parts ~= length or count > policy.detail or string.find(parts, "[^0-o]") then return end
  return parts, pieces
end

-- Returns the start, the sum of the parts, the current count and the parts, without the units that HINCRBY has just
-- `added`. `fields` contains the values of n and of the first two pieces. Returns false if the key does not exist, or
-- nothing if these scripts did not write it.
local function readHash(key, policy, fields, added)
  local number = tonumber(fields[1])
  if not fields[1] then
    if redis.call("EXISTS", key) == 0 then return false end
    return
  end
  if not number or number < STRICT_CODE or number > LARGEST then return end
  local back, current, count, previous = strictNumber(policy, number)
  local parts, pieces = partsInHash(key, policy, count, fields[2], fields[3])
  if not parts or sumOf(parts) ~= previous or current < added or current - added > MOST_STRICT then return end
  -- A code one sub-window back could also represent a sub-window 510 ahead. This case is not checked, because nearly
  -- all units count in the same way.
  if back > 1 then
    local endsMs = subWindowsEndMs(policy, policy.alignedMs - back * policy.stepMs, current - added, parts)
    local isLater = (back > policy.detail + FARTHEST_BACK and redis.call("PTTL", key) >= 0) or
      outlives(key, endsMs, STRICT_CODES / 2 * policy.stepMs)
    if isLater then back = back - STRICT_CODES end
  end
  piecesOf[key] = pieces
  return policy.alignedMs - back * policy.stepMs, previous, current - added, parts
end

local function fitsHash(policy, previous, current)
  return policy.isHash and previous <= MOST_STRICT and current <= MOST_STRICT
end

-- Writes the hash. `endsMs` is when the key expires, or false if the expiry and the parts are unchanged. Returns the
-- number.
local function writeHash(key, policy, startMs, previous, current, parts, endsMs)
  local code = floor(startMs / policy.stepMs) % STRICT_CODES + 1
  local number = code * STRICT_CODE + countOf(parts) * STRICT_PARTS + previous * STRICT_SUM + current
  if not endsMs then
    redis.call("HSET", key, "n", integer(number))
    return number
  end
  local pieces = math.ceil(#parts / STRICT_PIECE)
  local lastsMs = integer(max(1, endsMs - nowMs))
  local isThere = piecesOf[key] == pieces
  -- Set the TTL first, because a TTL that is too long does no harm if the next command fails.
  if isThere then redis.call("PEXPIRE", key, lastsMs) else redis.call("DEL", key) end
  if pieces == 0 then
    redis.call("HSET", key, "n", integer(number))
  elseif pieces == 1 then
    redis.call("HSET", key, "n", integer(number), "1", parts)
  else
    local arguments = {}
    for i = 1, pieces do
      arguments[2 * i - 1] = integer(i)
      arguments[2 * i] = string.sub(parts, (i - 1) * STRICT_PIECE + 1, i * STRICT_PIECE)
    end
    redis.call("HSET", key, "n", integer(number), unpack(arguments))
  end
  if not isThere then orForget(key, nil, "PEXPIRE", key, lastsMs) end
  piecesOf[key] = pieces
  return number
end
