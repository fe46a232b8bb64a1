-- The layout of counters. The digit in their keys (key.ts) is the layout's number. If these scripts would misread a
-- new layout, the new layout needs another digit. Its counters then start from zero. script-reply.ts contains the
-- same numbers, and test/redis/layout.test.ts compares them.

-- A packed value is one integer below 2^53, which Redis stores in 8 bytes and INCRBY can increase. The integer is:
-- code of the window * 2^42 + previous * 2^21 + current.
-- Codes are 1 to 2047. INCRBY on a missing key results in a number without a code, so it can be distinguished from a
-- packed value.
local PREVIOUS = 2097152
local WINDOW = PREVIOUS * PREVIOUS
local CODES = 2047
local MOST_PACKED = PREVIOUS / 2 - 1
-- Longest window, in milliseconds, for which the window times a packed count is exact.
local WIDEST_IN_PLACE = 4294967296
-- A code at most this many windows back represents a past window. A code farther back represents a future window,
-- because the clock went back. A key expires with its window, so a past window is never more than one or two windows
-- back.
local FARTHEST_BACK = 8
local LARGEST = 9007199254740991

-- The number in the hash of a strict window, which HINCRBY increases. The number is:
-- code of the current sub-window * 2^44 + number of parts * 2^35 + their sum * 2^18 + current.
-- Codes are 1 to 511, and there are at most 360 sub-windows. strict-number.lua reads all fields of the number. The
-- formulas for counting in place read only the fields that they need.
local STRICT_SUM = 262144
local MOST_STRICT = 131071
local STRICT_PARTS = (MOST_STRICT + 1) * STRICT_SUM
local STRICT_COUNTS = 512
local STRICT_CODE = STRICT_COUNTS * STRICT_PARTS
local STRICT_CODES = 511
-- Length in characters of the pieces that contain the parts of a strict window.
local STRICT_PIECE = 63

local WIDEST_WINDOW = 94000000
-- Length of the longest manual block, in milliseconds: a leap year.
local LONGEST_BLOCK = 31622400000

-- The kinds of counter, with the same numbers as in script-input.ts.
local IN_FLIGHT, SLIDING, FIXED, FIRST_HIT, CALENDAR, LEVEL = 0, 1, 2, 3, 4, 5
local PERIODIC, BUCKETED, STRICT, LOG, PENALTY = 6, 7, 8, 9, 10
-- Flags that are added to a policy's kind. The first flag means that refused requests count. The second flag means
-- that replies to grants of a strict policy also contain every part. The third flag means that refunds grant their units
-- for the current calendar period.
local COUNTS_REJECTED, TELLS_PARTS, GRANTS = 16, 32, 64

-- Set by take-one.lua or input.lua. `input` is a list of numbers. `givenNow` is the time at which to decide, or -1
-- for the server's own time. After `untilMs`, the script counts nothing, unless `untilMs` is 0.
local input, givenNow, untilMs, nowMs
-- Set by take-one.lua and take-many.lua for take.lua. `quickAnswer` contains the states of the keys that were
-- counted, and `quickDone` is the number of these keys. `quickValue` is the result of INCRBY or HINCRBY on the next
-- key.
local quickAnswer, quickValue
local quickDone = 0
