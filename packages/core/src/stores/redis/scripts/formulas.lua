-- Formulas that scripts.ts inserts wherever a script has USE and the formula's name. A function call would take longer
-- than the counting itself. Each formula reads and sets locals of the code that uses it.

-- FORMULA window-base
-- Reads `nowMs` and `windowMs`. `base` is the part of a packed value that stands for the present window. `leftMs` is
-- how much of the previous window the sliding window still covers.
local elapsedMs = nowMs % windowMs
local base, leftMs = ((nowMs - elapsedMs) / windowMs % CODES + 1) * WINDOW, windowMs - elapsedMs
-- FORMULA window-fits
-- `fits` is true if INCRBY of `units` was enough; `value` is its result. `rest` is the value without its base.
local rest = type(value) == "number" and value - base or -1
-- A shortcut: a `rest` up to the limit contains no previous count, and the present count fits.
local fits = rest > units and rest <= limit
if not fits and rest > 0 and rest < WINDOW and leftMs then
  local current = rest % PREVIOUS
  -- The first units of a window that follows another one change the key's expiry.
  fits = current > units and floor((rest - current) / PREVIOUS * leftMs / windowMs) + current <= limit
end
-- FORMULA strict-base
-- Reads `nowMs` and `stepMs`. `strictBase` is the part of a strict window's number that stands for the present
-- sub-window.
local strictBase = (floor(nowMs / stepMs) % STRICT_CODES + 1) * STRICT_CODE
-- FORMULA strict-fits
-- Like window-fits, but for HINCRBY in the hash of a strict window.
local rest = type(value) == "number" and value - strictBase or -1
local current = rest % STRICT_SUM
-- The first units of a sub-window change the key's expiry.
local fits = rest > 0 and rest < STRICT_CODE and current > units and
  (rest - current) / STRICT_SUM % (MOST_STRICT + 1) + current <= limit
