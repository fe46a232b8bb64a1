-- Exchanges the texts of processes. KEYS[1] is a hash. The field of a process is "<end> <process>" and contains its text.
-- The end is in milliseconds of the server's clock, because the fields of a hash have no TTL. The field of the process ""
-- means that somebody watches. ARGV is the process, its text ("" for none), and "1" to watch. Returns { isWatched (before
-- this call), isFull, texts of the other processes … }, with texts only for a process that watches. The twin is
-- redis-activity.ts.

local LIFE_MS = 10000
local MOST_TEXTS, MOST_BYTES, MOST_BYTES_OF_ALL = 200, 262144, 8388608
local key, process, text, watches = KEYS[1], ARGV[1], ARGV[2], ARGV[3] == "1"
local time = redis.call("TIME")
nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local isWatched, count, bytes, others = false, 0, #text, {}

for _, field in ipairs(redis.call("HKEYS", key)) do
  local endMs, owner = string.match(field, "^(%d+) (.*)$")
  local restMs = (tonumber(endMs) or 0) - nowMs
  local length = redis.call("HSTRLEN", key, field)
  local isReplaced = (owner == process and text ~= "") or (owner == "" and watches)
  -- If the end is too far away, the clock has gone back, or another program has written the field.
  local isValid = restMs > 0 and restMs <= LIFE_MS and length <= MOST_BYTES
  if isValid and owner == "" then isWatched = true end
  if not isValid or isReplaced then
    redis.call("HDEL", key, field)
  elseif owner ~= "" then
    count = count + 1
    bytes = bytes + length
    if owner ~= process and count <= MOST_TEXTS and bytes <= MOST_BYTES_OF_ALL then others[#others + 1] = field end
  end
end

local function keep(owner, value)
  redis.call("HSET", key, string.format("%.0f %s", nowMs + LIFE_MS, owner), value)
  orForget(key, nil, "PEXPIRE", key, LIFE_MS)
end

local isFull = count >= MOST_TEXTS or bytes > MOST_BYTES_OF_ALL
if text ~= "" and not isFull then keep(process, text) end
if watches then keep("", "") end
local texts = watches and #others > 0 and redis.call("HMGET", key, unpack(others)) or {}
return { isWatched and 1 or 0, isFull and 1 or 0, unpack(texts) }
