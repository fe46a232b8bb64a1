-- Reads the number in the hash of a strict window. Returns how many sub-windows ago its sub-window was the current one,
-- by the code alone. Then follow the count of that sub-window, the number of parts, and the sum of the parts.
local function strictNumber(policy, number)
  local current = number % STRICT_SUM
  local rest = (number - current) / STRICT_SUM
  local sum = rest % (MOST_STRICT + 1)
  rest = (rest - sum) / (MOST_STRICT + 1)
  local count = rest % STRICT_COUNTS
  return (policy.strictBase / STRICT_CODE - (rest - count) / STRICT_COUNTS) % STRICT_CODES, current, count, sum
end
