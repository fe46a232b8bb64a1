-- Formulas that scripts.ts writes out wherever a script says USE and the name: to call a function takes longer than to count.
-- Each one reads and sets locals of the place where it is used.

-- FORMULA window-base
-- From `nowMs` and `windowMs`: `base` is the part of a packed value that stands for the present window, and `leftMs` is what is
-- left of the previous window in the sliding one.
local elapsedMs = nowMs % windowMs
local base, leftMs = ((nowMs - elapsedMs) / windowMs % CODES + 1) * WINDOW, windowMs - elapsedMs
-- FORMULA window-fits
-- Whether INCRBY of `units`, which made this `value`, was enough: `fits`, and `rest` is the value without its base.
local rest = type(value) == "number" and value - base or -1
-- A short cut: up to the limit there is no previous count, and room for all of the present one.
local fits = rest > units and rest <= limit
if not fits and rest > 0 and rest < WINDOW and leftMs then
  local current = rest % PREVIOUS
  -- The first units of a window after those of another one change when the key ends.
  fits = current > units and floor((rest - current) / PREVIOUS * leftMs / windowMs) + current <= limit
end
-- FORMULA strict-base
-- From `nowMs` and `stepMs`: the part of a strict window's number that stands for the present sub-window.
local strictBase = (floor(nowMs / stepMs) % STRICT_CODES + 1) * STRICT_CODE
-- FORMULA strict-fits
-- The same as window-fits of HINCRBY in the hash of a strict window.
local rest = type(value) == "number" and value - strictBase or -1
local current = rest % STRICT_SUM
-- The first units of a sub-window change when the key ends.
local fits = rest > 0 and rest < STRICT_CODE and current > units and
  (rest - current) / STRICT_SUM % (MOST_STRICT + 1) + current <= limit
