-- Formulas that scripts.ts inserts wherever a script contains USE and the formula's name. Formulas replace functions
-- here, because a function call would take longer than the counting itself. Each formula reads and sets locals of the
-- code that uses it.

-- FORMULA now
-- Sets `nowMs` to `givenNow`, or to the server's time if no time is given.
nowMs = givenNow
if nowMs < 0 then
  local time = redis.call("TIME")
  local ms = time[2] / 1000
  nowMs = time[1] * 1000 + ms - ms % 1
end
-- FORMULA window-base
-- Reads `nowMs`, `kind` and `windowMs`. `base` is the part of a packed value that represents the current window.
-- `leftMs` is the time of the previous window that the sliding window still covers. Permits of the previous window count
-- in full.
local elapsedMs = nowMs % windowMs
local base = ((nowMs - elapsedMs) / windowMs % CODES + 1) * WINDOW
local leftMs = kind == IN_FLIGHT and windowMs or windowMs - elapsedMs
-- FORMULA window-fits
-- `value` is the result of INCRBY of `units`. `fits` is true if no other command is needed. `rest` is the value without
-- its base.
local rest = type(value) == "number" and value - base or -1
-- A shortcut: if `rest` does not exceed the limit, the previous count is 0 and the current count fits.
local fits = rest > units and rest <= limit
if not fits and rest > 0 and rest < WINDOW and leftMs then
  local current = rest % PREVIOUS
  -- `fits` is false for the first units of a window that follows another window, because these units change the key's
  -- expiry. A key with permits has the same expiry if the current window contains none. Rounding down is not needed,
  -- because the other terms are integers.
  fits = (current > units or kind == IN_FLIGHT and current == units) and
    (rest - current) / PREVIOUS * leftMs / windowMs < limit + 1 - current
end
-- FORMULA window-before
-- Reads the locals of window-base, `key`, and the `value` of INCRBY of `units`. `previous` is the count of the
-- previous window if the key contained a counter of that window, or 0 if the key did not exist. Otherwise `previous` is
-- false.
local previous = value == units and 0
if not previous and kind <= SLIDING and leftMs and type(value) == "number" then
  local last = value - units - ((base / WINDOW + CODES - 2) % CODES + 1) * WINDOW
  -- The same check as `outlives` in call.lua.
  previous = last >= 0 and last < WINDOW and
    not (givenNow < 0 and redis.call("PTTL", key) + elapsedMs > CODES / 2 * windowMs) and last % PREVIOUS
end
-- FORMULA refund-added
-- Reads `nowMs`, `kind`, `windowMs`, `alignedMs`, and the `units` that were taken in the window at `afterMs`. `added` is
-- what INCRBY must add to refund them, or false if INCRBY cannot.
local place = afterMs == alignedMs and 1 or kind <= SLIDING and afterMs == alignedMs - windowMs and PREVIOUS
local added = place and -units * place
-- A renewal moves permits from the previous window to the current one.
if kind == IN_FLIGHT and units < 0 then added = place == PREVIOUS and units * (PREVIOUS - 1) end
-- FORMULA refund-fits
-- Reads the locals of refund-added, `base`, and the `value` of INCRBY of `added`. `fits` is true if no other command is
-- needed: the key's expiry stays the same if the current window contains units both before and after the refund. Permits
-- never change it. If a window had counted fewer than `units`, the result of INCRBY is negative, or its count is above
-- `MOST_PACKED`.
local rest = type(value) == "number" and value - base or -1
local current = rest % PREVIOUS
local least = kind == IN_FLIGHT and -1 or place == 1 and max(0, added) or 0
local fits = rest >= 0 and rest < WINDOW / 2 and current > least and current <= MOST_PACKED
-- FORMULA strict-base
-- Reads `nowMs` and `stepMs`. `strictBase` is the part of a strict window's number that represents the current
-- sub-window.
local strictBase = ((nowMs - nowMs % stepMs) / stepMs % STRICT_CODES + 1) * STRICT_CODE
-- FORMULA strict-fits
-- Like window-fits, but for HINCRBY in the hash of a strict window.
local rest = type(value) == "number" and value - strictBase or -1
local current = rest % STRICT_SUM
-- `fits` is false for the first units of a sub-window, because these units change the key's expiry.
local fits = rest > 0 and rest < STRICT_CODE and current > units and
  (rest - current) / STRICT_SUM % (MOST_STRICT + 1) + current <= limit
