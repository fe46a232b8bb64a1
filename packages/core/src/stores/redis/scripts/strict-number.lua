-- What the number in the hash of a strict window says: how many sub-windows ago it was the present one's, by its code alone, the
-- count of that one, how many parts there are, and their sum.
local function strictNumber(policy, number)
  local current = number % STRICT_SUM
  local rest = (number - current) / STRICT_SUM
  local sum = rest % (MOST_STRICT + 1)
  rest = (rest - sum) / (MOST_STRICT + 1)
  local count = rest % STRICT_COUNTS
  return (policy.strictBase / STRICT_CODE - (rest - count) / STRICT_COUNTS) % STRICT_CODES, current, count, sum
end
