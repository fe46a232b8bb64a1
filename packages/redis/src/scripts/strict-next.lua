-- Returns the TTL, as a Redis argument, for a strict window that counts units now. Computed once per policy for all
-- keys of a call.
local function strictLasts(policy)
  policy.lasts = policy.lasts or integer(policy.alignedMs + (policy.detail + 1) * policy.stepMs - nowMs)
  return policy.lasts
end

-- Begins a new sub-window of a strict window if all units fit: a short path. `number` is the number in the hash
-- before these units. Returns the new number, or nothing if the short path does not apply.
local function beginNext(key, policy, number, units)
  local back, current, count, left = strictNumber(policy, number)
  local detail = policy.detail
  if count == 0 or back == 0 or back >= detail then return end
  local parts = redis.call("HGET", key, "1") or ""
  local width = (byte(parts) or FIRST_DIGIT) - FIRST_DIGIT
  local last = 1 + count * width
  -- The hash may still have a second piece that is no longer needed.
  if last > STRICT_PIECE then parts = parts .. (redis.call("HGET", key, "2") or "") end
  -- With a width of 0, the loops below would never end.
  if width < 1 or #parts ~= last or current >= 64 ^ width then return end
  local kept = count > detail - back and 1 + (detail - back) * width or last
  local dropped = 0
  for at = kept + 1, last, width do dropped = dropped + parseDigits(parts, at, width) end
  local stays = 0
  for at = 2, kept, width do stays = stays + parseDigits(parts, at, width) end
  if stays + dropped ~= left or current > MOST_STRICT then return end
  left = stays + current
  while kept > 1 and byte(parts, kept) == FIRST_DIGIT and (width == 1 or parseDigits(parts, kept - width + 1, width) == 0) do
    kept = kept - width
  end
  local length = kept + back * width
  if kept == 1 or left + units > policy.limit or length > 2 * STRICT_PIECE then return end
  local newest = sub(parts, 1, 1)
  if back > 1 then
    -- The same check as in strict-hash.lua. If the latest sub-window is empty, the key expires sooner than `endsMs`.
    -- The difference is less than half a round of codes, because two pieces contain only a few parts.
    local endsMs = policy.alignedMs + (detail + 1 - back) * policy.stepMs
    if outlives(key, endsMs, STRICT_CODES / 2 * policy.stepMs) then return end
    newest = newest .. rep("0", (back - 1) * width)
  end
  parts = newest .. digits(current, width) .. sub(parts, 2, kept)
  number = policy.strictBase + (length - 1) / width * STRICT_PARTS + left * STRICT_SUM + units
  local text = integer(number)
  -- Set the TTL first, because a TTL that is too long does no harm if the next command fails.
  redis.call("PEXPIRE", key, strictLasts(policy))
  if length > STRICT_PIECE then
    redis.call("HSET", key, "n", text, "1", sub(parts, 1, STRICT_PIECE), "2", sub(parts, STRICT_PIECE + 1))
  else
    redis.call("HSET", key, "n", text, "1", parts)
  end
  return number
end
