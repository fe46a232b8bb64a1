-- Lists of numbers in base 64: the twin of src/algorithms/packed-counts.ts.

local function digitsFor(most)
  local width, bound = 1, 64
  while bound <= most do width, bound = width + 1, bound * 64 end
  return width
end

local function countOf(packed)
  return packed == "" and 0 or (#packed - 1) / parseDigits(packed, 1, 1)
end

-- Returns the number at an index, counted from 0, or 0 if the list is shorter.
local function numberAt(packed, index)
  if packed == "" then return 0 end
  local width = parseDigits(packed, 1, 1)
  return parseDigits(packed, 2 + index * width, width)
end

-- Packs the first `length` numbers of a list, and omits the zeros at the end.
local function pack(numbers, length)
  while length > 0 and numbers[length] == 0 do length = length - 1 end
  if length == 0 then return "" end
  local most = 0
  for i = 1, length do most = max(most, numbers[i]) end
  local width = digitsFor(most)
  local texts = { digits(width, 1) }
  for i = 1, length do texts[i + 1] = digits(numbers[i], width) end
  return table.concat(texts)
end

-- Returns a packed list of `empty` zeros, then `number`, then the first `kept` numbers of `packed`.
local function shift(packed, empty, number, kept)
  local width = packed == "" and 1 or parseDigits(packed, 1, 1)
  local last = 1 + kept * width
  while last > 1 and parseDigits(packed, last - width + 1, width) == 0 do last = last - width end
  if last > 1 and number < 64 ^ width then
    return string.sub(packed, 1, 1) .. string.rep("0", empty * width) .. digits(number, width) ..
      string.sub(packed, 2, last)
  end
  local numbers = {}
  for i = 1, empty do numbers[i] = 0 end
  numbers[empty + 1] = number
  for i = 1, (last - 1) / width do numbers[empty + 1 + i] = numberAt(packed, i - 1) end
  return pack(numbers, #numbers)
end

-- True if a string has a valid length for the parts of such a counter. A log may have any number of entries.
local function areParts(policy, parts)
  local width = parseDigits(parts, 1, 1)
  if policy.kind == LOG then width = width + digitsFor(policy.windowMs) end
  return fmod(#parts - 1, width) == 0 and (policy.kind == LOG or (#parts - 1) / width <= policy.detail)
end

-- Returns the sum of the numbers from an index on, or of all numbers.
local function sumOf(packed, from)
  local width, sum = packed == "" and 1 or parseDigits(packed, 1, 1), 0
  for at = 2 + (from or 0) * width, #packed, width do sum = sum + parseDigits(packed, at, width) end
  return sum
end
