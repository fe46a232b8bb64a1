-- Reads the policies at the start of the input, and then its numbers one after the other.

-- Starts after `givenNow` and `untilMs`.
local position = 2
local function nextNumber()
  position = position + 1
  return input[position]
end

local isWide = nextNumber() == 1

-- Returns the start and the end of the calendar period that contains a time. Outside of the boundaries, each period is
-- as long as the window.
local function periodAt(boundaries, windowMs, ms)
  local next = 1
  while boundaries[next] and boundaries[next] <= ms do next = next + 1 end
  if next > 1 and boundaries[next] then return boundaries[next - 1], boundaries[next] end
  local fromMs = boundaries[max(1, next - 1)]
  local startMs = fromMs + floor((ms - fromMs) / windowMs) * windowMs
  return startMs, startMs + windowMs
end

local function areOfOnePeriod(policy, oneMs, otherMs)
  local startMs, endsMs = periodAt(policy.detail, policy.windowMs, oneMs)
  return otherMs >= startMs and otherMs < endsMs
end

-- The fields of a policy:
--   `limit` is the ceiling.
--   `detail` is the units that come back in a window, the block durations of a penalty, the number of sub-windows, or the
--   boundaries of calendar periods.
--   `stepMs` is the length of a sub-window.
--   `endsMs` is the end of the current calendar period.
--   `leftMs` is set only if its product with a packed count is exact, for windows of up to 49 days.
--   `packs` is true if INCRBY alone can count.
--   `isHash` is true for a strict window whose limit fits in the number of the hash.
--   `countsInHash` is true if HINCRBY alone can count.
local policies = {}
for i = 1, nextNumber() do
  local kind, limit, windowMs, detail = nextNumber(), nextNumber(), nextNumber(), nextNumber()
  local grants = kind >= GRANTS
  if grants then kind = kind - GRANTS end
  local tellsParts = kind >= TELLS_PARTS
  if tellsParts then kind = kind - TELLS_PARTS end
  local stepMs, countsRejected = windowMs, kind >= COUNTS_REJECTED
  if countsRejected then kind = kind - COUNTS_REJECTED end
  if kind == FIRST_HIT or kind == CALENDAR or kind == LEVEL or kind == LOG or kind == PENALTY then
    stepMs = 1
  elseif kind >= BUCKETED then
    stepMs = math.ceil(windowMs / detail)
  end
  local alignedMs, endsMs = nowMs - fmod(nowMs, stepMs), nil
  if kind == CALENDAR then alignedMs, endsMs = periodAt(detail, windowMs, nowMs) end
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
    endsMs = endsMs,
    base = base,
    leftMs = windowMs <= WIDEST_IN_PLACE and leftMs,
    countsRejected = countsRejected,
    grants = grants,
    packs = not isWide and not countsRejected and kind <= FIXED and limit <= MOST_PACKED,
    isHash = isHash,
    countsInHash = isHash and not tellsParts and not countsRejected,
    strictBase = strictBase,
  }
end

-- True if a key expires more than `byMs` after `endsMs`, by the server's own clock. The key's window is then later
-- than its code alone suggests, because the clock went back so far that the codes wrapped around. The TTL then grew
-- by the same time. Half a round of codes separates the two cases, even if a busy server set the TTL late.
local function outlives(key, endsMs, byMs)
  return givenNow < 0 and redis.call("PTTL", key) + nowMs - endsMs > byMs
end

-- "%d" is three times as fast as "%.0f", but gives wrong results if Lua's integers have 32 bits.
local INTEGER = string.format("%d", LARGEST) == "9007199254740991" and "%d" or "%.0f"

-- Returns an integer as a Redis argument. Lua itself would write a large integer with an exponent.
local function integer(number)
  return string.format(INTEGER, number)
end

-- Returns an integer in a form that can be concatenated with strings. Returns a small number unchanged, because Lua
-- formats it correctly and faster than `integer` does.
local function plain(number)
  return number < 1e14 and number or integer(number)
end
