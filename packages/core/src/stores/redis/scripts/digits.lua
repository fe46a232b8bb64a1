-- Numbers in base 64, with the digits that start at "0".

local FIRST_DIGIT = 48

local function digits(number, width)
  local text = ""
  for _ = 1, width do
    text = string.char(FIRST_DIGIT + fmod(number, 64)) .. text
    number = floor(number / 64)
  end
  return text
end

-- The number of so many digits from there, counted from 1.
local function parseDigits(text, from, width)
  local number = 0
  for at = from, from + width - 1 do
    -- The digit by itself first: with the character's code in between, the largest numbers would be rounded.
    number = number * 64 + ((string.byte(text, at) or FIRST_DIGIT) - FIRST_DIGIT)
  end
  return number
end
