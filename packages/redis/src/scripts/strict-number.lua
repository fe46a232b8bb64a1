-- Reads the number in the hash of a strict window. Returns the age of the number's sub-window, counted in sub-windows
-- and judged only by its code. Also returns that sub-window's count, the number of parts, and the sum of the parts.
local function strictNumber(policy, number)
  local current = number % STRICT_SUM
  local rest = (number - current) / STRICT_SUM
  local sum = rest % (MOST_STRICT + 1)
  rest = (rest - sum) / (MOST_STRICT + 1)
  local count = rest % STRICT_COUNTS
  return (policy.strictBase / STRICT_CODE - (rest - count) / STRICT_COUNTS) % STRICT_CODES, current, count, sum
end
