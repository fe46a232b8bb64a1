-- Numbers in base 64. The digits are the 64 characters that begin with "0".

local byte, char, rep, sub = string.byte, string.char, string.rep, string.sub
local FIRST_DIGIT = 48

local function digits(number, width)
  if width == 1 then return char(FIRST_DIGIT + number % 64) end
  local text = ""
  for _ = 1, width do
    text = char(FIRST_DIGIT + number % 64) .. text
    number = floor(number / 64)
  end
  return text
end

-- Returns the number that `width` digits represent; the first digit is at position `from`, counted from 1.
local function parseDigits(text, from, width)
  local number = 0
  for at = from, from + width - 1 do
    -- Subtract first, because adding the character's code first would round the largest numbers.
    number = number * 64 + ((byte(text, at) or FIRST_DIGIT) - FIRST_DIGIT)
  end
  return number
end
