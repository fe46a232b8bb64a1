-- Formulas that scripts.ts inserts wherever a script has USE and the formula's name. A function call would take longer
-- than the counting itself. Each formula reads and sets locals of the code that uses it.

-- FORMULA now
-- Reads `givenNow`, and sets `nowMs` to it or to the server's time.
nowMs = givenNow
if nowMs < 0 then
  local time = redis.call("TIME")
  local ms = time[2] / 1000
  nowMs = time[1] * 1000 + ms - ms % 1
end
-- FORMULA window-base
-- Reads `nowMs` and `windowMs`. `base` is the part of a packed value that stands for the current window. `leftMs` is
-- how much of the previous window the sliding window still covers.
local elapsedMs = nowMs % windowMs
local base, leftMs = ((nowMs - elapsedMs) / windowMs % CODES + 1) * WINDOW, windowMs - elapsedMs
-- FORMULA window-fits
-- `fits` is true if INCRBY of `units` was enough; `value` is its result. `rest` is the value without its base.
local rest = type(value) == "number" and value - base or -1
-- A shortcut: a `rest` up to the limit contains no previous count, and the current count fits.
local fits = rest > units and rest <= limit
if not fits and rest > 0 and rest < WINDOW and leftMs then
  local current = rest % PREVIOUS
  -- The first units of a window that follows another one change the key's expiry. Rounding down is not needed, because
  -- the other terms are integers.
  fits = current > units and (rest - current) / PREVIOUS * leftMs / windowMs < limit + 1 - current
end
-- FORMULA window-before
-- Reads the locals of window-base, `key`, `kind`, and the `value` of INCRBY of `units`. `previous` is the count of the
-- previous window, if the key had a counter of that window or none. Otherwise it is false.
local previous = value == units and 0
if not previous and kind == SLIDING and leftMs and type(value) == "number" then
  local last = value - units - ((base / WINDOW + CODES - 2) % CODES + 1) * WINDOW
  -- As in `outlives` of call.lua.
  previous = last >= 0 and last < WINDOW and
    not (givenNow < 0 and redis.call("PTTL", key) + windowMs - leftMs > CODES / 2 * windowMs) and last % PREVIOUS
end
-- FORMULA strict-base
-- Reads `nowMs` and `stepMs`. `strictBase` is the part of a strict window's number that stands for the current
-- sub-window.
local strictBase = ((nowMs - nowMs % stepMs) / stepMs % STRICT_CODES + 1) * STRICT_CODE
-- FORMULA strict-fits
-- Like window-fits, but for HINCRBY in the hash of a strict window.
local rest = type(value) == "number" and value - strictBase or -1
local current = rest % STRICT_SUM
-- The first units of a sub-window change the key's expiry.
local fits = rest > 0 and rest < STRICT_CODE and current > units and
  (rest - current) / STRICT_SUM % (MOST_STRICT + 1) + current <= limit
