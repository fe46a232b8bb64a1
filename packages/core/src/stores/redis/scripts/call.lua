-- The numbers of the input, read one after the other, and the policies that they begin with.

if not input then
  input = {
    givenNow, untilMs, 0,
    1, tonumber(ARGV[5]), tonumber(ARGV[3]), tonumber(ARGV[2]), tonumber(ARGV[8]),
    1, tonumber(ARGV[6]), 1, 1, tonumber(ARGV[7]),
  }
end
-- Behind the two times.
local position = 2
local function nextNumber()
  position = position + 1
  return input[position]
end

local isWide = nextNumber() == 1

-- A policy's `lastBase` is the base of the window before the present one. `leftMs` is set where its product with a packed count is
-- exact: up to 49 days. `limit` is the ceiling, and `detail` the units that come back in a window, the milliseconds that a penalty
-- blocks for, or the number of sub-windows, which have a length of `stepMs`. INCRBY alone counts where it `packs`; a strict window
-- `isHash` where its limit fits the number, and HINCRBY alone `countsInHash`.
local policies = {}
for i = 1, nextNumber() do
  local kind, limit, windowMs, detail = nextNumber(), nextNumber(), nextNumber(), nextNumber()
  local tellsParts = kind >= TELLS_PARTS
  if tellsParts then kind = kind - TELLS_PARTS end
  local stepMs, countsRejected = windowMs, kind >= COUNTS_REJECTED
  if countsRejected then kind = kind - COUNTS_REJECTED end
  if kind == FIRST_HIT or kind == LEVEL or kind == LOG or kind == PENALTY then
    stepMs = 1
  elseif kind >= BUCKETED then
    stepMs = math.ceil(windowMs / detail)
  end
  local alignedMs = nowMs - fmod(nowMs, stepMs)
  -- USE window-base
  -- USE strict-base
  local isHash = not isWide and kind == STRICT and limit <= MOST_STRICT
  policies[i] = {
    kind = kind,
    limit = limit,
    windowMs = windowMs,
    detail = detail,
    stepMs = stepMs,
    alignedMs = alignedMs,
    base = base,
    lastBase = ((base / WINDOW + CODES - 2) % CODES + 1) * WINDOW,
    leftMs = windowMs <= WIDEST_IN_PLACE and leftMs,
    countsRejected = countsRejected,
    packs = not isWide and not countsRejected and kind <= FIXED and limit <= MOST_PACKED,
    isHash = isHash,
    countsInHash = isHash and not tellsParts and not countsRejected,
    strictBase = strictBase,
  }
end

-- Whether a key lives on for so long beyond an instant, by the server's own clock: then it is of a later window than its code
-- says by itself. The clock went back by so many that the codes have come round, and the time to live with it. Half a round
-- tells the two apart, however late a busy server came to set it.
local function outlives(key, endsMs, byMs)
  return givenNow < 0 and redis.call("PTTL", key) + nowMs - endsMs > byMs
end

-- "%d" is three times as quick as "%.0f", and wrong where Lua's integers have 32 bits.
local INTEGER = string.format("%d", LARGEST) == "9007199254740991" and "%d" or "%.0f"

-- An integer as Redis takes it: Lua would write a large one with an exponent.
local function integer(number)
  return string.format(INTEGER, number)
end

-- The same for what is put together with texts, where a short one is written right, and sooner.
local function plain(number)
  return number < 1e14 and number or integer(number)
end
