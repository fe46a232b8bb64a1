-- The layout of counters, of which the digit in their keys (key.ts) is the number: a layout that this one would misread needs
-- another digit, under which counters start anew. The same numbers are in script-reply.ts; test/redis/layout.test.ts holds both
-- to them.

local floor, fmod, max, min = math.floor, math.fmod, math.max, math.min

-- A packed value is one integer below 2^53, which Redis keeps in 8 bytes and INCRBY counts in:
-- code of the window * 2^42 + previous * 2^21 + current. Codes are 1 to 2047, so that what INCRBY makes of a key that was
-- not there, which has no code, is told from it.
local PREVIOUS = 2097152
local WINDOW = PREVIOUS * PREVIOUS
local CODES = 2047
local MOST_PACKED = PREVIOUS / 2 - 1
-- Milliseconds of a window: the product with a packed count is exact.
local WIDEST_IN_PLACE = 4294967296
-- Windows that lie so far back are past, and others ahead: the clock went back. A key expires with its window, so more
-- than one or two windows back is never seen.
local FARTHEST_BACK = 8
local LARGEST = 9007199254740991

-- The number in the hash of a strict window, in which HINCRBY counts: code of the present sub-window * 2^44 + how many parts
-- there are * 2^35 + their sum * 2^18 + current. Codes are 1 to 511, and there are 360 sub-windows at most. strict-number.lua reads
-- it; the formulas for counting in place read what they need of it by themselves.
local STRICT_SUM = 262144
local MOST_STRICT = 131071
local STRICT_PARTS = (MOST_STRICT + 1) * STRICT_SUM
local STRICT_COUNTS = 512
local STRICT_CODE = STRICT_COUNTS * STRICT_PARTS
local STRICT_CODES = 511
-- Characters of the pieces that its parts are in.
local STRICT_PIECE = 63

local WIDEST_WINDOW = 94000000
-- Milliseconds of the longest block by hand: a leap year.
local LONGEST_BLOCK = 31622400000

-- The kinds of counter, as script-input.ts numbers them.
local SLIDING, FIXED, FIRST_HIT, LEVEL, PERIODIC, BUCKETED, STRICT, LOG, PENALTY = 1, 2, 3, 4, 5, 6, 7, 8, 9
-- Added to the kind of a policy under which requests count that it refuses, and of a strict one of which a grant, too, has to tell
-- every part.
local COUNTS_REJECTED, TELLS_PARTS = 16, 32

-- What take-one.lua and take-many.lua leave: how many keys are counted and their states, and what INCRBY or HINCRBY made of the
-- next one.
local quickAnswer, quickValue
local quickDone = 0
