-- Numbers in base 64, with the digits that start at "0".

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

-- The number of so many digits from there, counted from 1.
local function parseDigits(text, from, width)
  local number = 0
  for at = from, from + width - 1 do
    -- The digit by itself first: with the character's code in between, the largest numbers would be rounded.
    number = number * 64 + ((byte(text, at) or FIRST_DIGIT) - FIRST_DIGIT)
  end
  return number
end
