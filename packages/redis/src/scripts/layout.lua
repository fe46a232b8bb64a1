-- The layout of counters. The digit in their keys (key.ts) is the layout's number. A layout that this one would misread
-- needs another digit, under which counters start from zero. script-reply.ts has the same numbers;
-- test/redis/layout.test.ts checks both.

-- A packed value is one integer below 2^53, which Redis keeps in 8 bytes and INCRBY can add to.
-- Code of the window * 2^42 + previous * 2^21 + current. Codes are 1 to 2047. INCRBY on a missing key results in a
-- number without a code, which can be distinguished from a packed value.
local PREVIOUS = 2097152
local WINDOW = PREVIOUS * PREVIOUS
local CODES = 2047
local MOST_PACKED = PREVIOUS / 2 - 1
-- Longest window, in milliseconds, whose product with a packed count is exact.
local WIDEST_IN_PLACE = 4294967296
-- Windows at most this far back are past. A code farther back stands for a window ahead: the clock went back. A key
-- expires with its window, so a past window is never more than one or two windows back.
local FARTHEST_BACK = 8
local LARGEST = 9007199254740991

-- The number in the hash of a strict window, which HINCRBY adds to.
-- Code of the current sub-window * 2^44 + number of parts * 2^35 + their sum * 2^18 + current.
-- Codes are 1 to 511, and there are at most 360 sub-windows. strict-number.lua reads all of the number. The formulas
-- for counting in place read only what they need.
local STRICT_SUM = 262144
local MOST_STRICT = 131071
local STRICT_PARTS = (MOST_STRICT + 1) * STRICT_SUM
local STRICT_COUNTS = 512
local STRICT_CODE = STRICT_COUNTS * STRICT_PARTS
local STRICT_CODES = 511
-- Length in characters of the pieces that hold its parts.
local STRICT_PIECE = 63

local WIDEST_WINDOW = 94000000
-- Milliseconds of the longest manual block: a leap year.
local LONGEST_BLOCK = 31622400000

-- The kinds of counter, with the numbers of script-input.ts.
local SLIDING, FIXED, FIRST_HIT, LEVEL, PERIODIC, BUCKETED, STRICT, LOG, PENALTY = 1, 2, 3, 4, 5, 6, 7, 8, 9
-- Added to a policy's kind. The first means that refused requests count. The second means that grants of a strict
-- policy return every part, too.
local COUNTS_REJECTED, TELLS_PARTS = 16, 32

-- Set by take-one.lua or input.lua. `input` is a list of numbers. `givenNow` is the time to decide at, or -1 for the
-- server's own. After `untilMs`, unless it is 0, the script counts nothing.
local input, givenNow, untilMs, nowMs
-- Set by take-one.lua and take-many.lua for take.lua: the states of the counted keys, and their number. `quickValue` is
-- the result of INCRBY or HINCRBY on the next key.
local quickAnswer, quickValue
local quickDone = 0
