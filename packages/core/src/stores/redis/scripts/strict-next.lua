-- The shortest way into a sub-window of a strict window that begins, when there is room for all of the units: yields the number, or
-- nothing where it is another case. `number` is what was there.
local function beginNext(key, policy, number, units)
  local back, current, count, previous = strictNumber(policy, number)
  if count == 0 or back == 0 or back >= policy.detail then return end
  local pieces = redis.call("HMGET", key, "1", "2")
  local first, second = pieces[1] or "", pieces[2] or ""
  local width = (string.byte(first) or 0) - FIRST_DIGIT
  local last = 1 + count * width
  -- There may be one that is no longer needed.
  if last <= STRICT_PIECE then second = "" end
  if #first + #second ~= last or current >= 64 ^ width then return end
  local parts, left, kept = first .. second, previous + current, 1 + min(count, policy.detail - back) * width
  for at = kept + 1, last, width do left = left - parseDigits(parts, at, width) end
  last = kept
  while last > 1 and parseDigits(parts, last - width + 1, width) == 0 do last = last - width end
  local length = last + back * width
  if last == 1 or left + units > policy.limit or length > 2 * STRICT_PIECE then return end
  -- See strict-hash.lua. With no units in the present one it ends sooner, though by less than half a round: two pieces are short.
  local endsMs = policy.alignedMs + (policy.detail + 1 - back) * policy.stepMs
  if back > 1 and outlives(key, endsMs, STRICT_CODES / 2 * policy.stepMs) then return end
  parts = string.sub(first, 1, 1) .. string.rep("0", (back - 1) * width) .. digits(current, width) .. string.sub(parts, 2, last)
  number = policy.strictBase + (length - 1) / width * STRICT_PARTS + left * STRICT_SUM + units
  -- First: a time to live that is too long does no harm, should the next command fail.
  redis.call("PEXPIRE", key, integer(policy.alignedMs + (policy.detail + 1) * policy.stepMs - nowMs))
  if length > STRICT_PIECE then
    redis.call("HSET", key, "n", integer(number), "1", string.sub(parts, 1, STRICT_PIECE), "2",
      string.sub(parts, STRICT_PIECE + 1))
  else
    redis.call("HSET", key, "n", integer(number), "1", parts)
  end
  return number
end
