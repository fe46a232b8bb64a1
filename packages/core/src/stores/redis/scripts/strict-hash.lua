-- How the counter of a strict window is kept, so that HINCRBY alone can count in it: a hash of the number `n`, which layout.lua
-- describes, and the parts in pieces, "1" and on, each so short that Redis keeps the hash in one piece of memory.

-- How many pieces a key had when it was read or written last; nothing where it was no such hash.
local piecesOf = {}

-- The parts, of which there are so many; nothing when they are not there. A piece that is no longer needed may be left.
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

-- Start, sum, current count and parts, without units that HINCRBY has just added, by the first `fields`: n and two pieces.
-- False where there is no key, nothing for what no script of ours has written.
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
  -- In the one before this nearly all units count as they do now, so nobody asks whether it is one 510 sub-windows later.
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

-- `endsMs` is when the key ends; nothing where that, and the parts, are as they were. Yields the number.
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
  -- First, as a time to live that is too long does no harm should the next command fail.
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
