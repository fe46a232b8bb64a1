-- The sliding log: the twin of src/algorithms/sliding-log.ts and packed-log.ts.

-- Returns the entries of a state. A place is the position of an entry's first character, counted from 1. The end is
-- the position after the last entry.
local FIRST = 2
local function logOf(policy, startMs, parts)
  local timeWidth = policy.timeWidth or digitsFor(policy.windowMs)
  policy.timeWidth = timeWidth
  local unitsWidth = parts == "" and 0 or parseDigits(parts, 1, 1)
  return {
    text = parts,
    startMs = startMs,
    timeWidth = timeWidth,
    unitsWidth = unitsWidth,
    width = timeWidth + unitsWidth,
    turnMs = 64 ^ timeWidth,
    last = max(FIRST, #parts + 1),
  }
end

local function timeAt(log, place)
  return log.startMs - fmod(log.startMs - parseDigits(log.text, place, log.timeWidth), log.turnMs)
end

local function unitsAt(log, place)
  return parseDigits(log.text, place + log.timeWidth, log.unitsWidth)
end

-- Returns the place of the first entry that is not earlier than an instant.
local function placeOf(log, instantMs)
  local low, high = 0, (log.last - FIRST) / log.width
  while low < high do
    local middle = floor((low + high) / 2)
    if timeAt(log, FIRST + middle * log.width) < instantMs then low = middle + 1 else high = middle end
  end
  return FIRST + low * log.width
end

local function unitsBetween(log, from, to)
  local units = 0
  for place = from, to - 1, log.width do units = units + unitsAt(log, place) end
  return units
end

-- True if a state is valid enough to refuse a request. The entries of a log must be in order and add up to its count.
-- Does not add up the entries if refusals count. No process caches such refusals, so Redis would have to add up the
-- entries for every request.
local function isSoundRefusal(policy, startMs, current, parts)
  if policy.kind ~= LOG or policy.countsRejected then return true end
  local log, units, lastMs = logOf(policy, startMs, parts), 0, -1
  for place = FIRST, log.last - 1, log.width do
    local atMs = timeAt(log, place)
    if atMs <= lastMs then return false end
    units, lastMs = units + unitsAt(log, place), atMs
  end
  return units == current
end

-- Returns the packed entries after replacing the entries between two places with one entry. Adds no entry if `units`
-- is 0.
local function replaced(log, from, to, atMs, units)
  if units == 0 and from == FIRST and to == log.last then return "" end
  local before, after = string.sub(log.text, 1, from - 1), string.sub(log.text, to)
  if units == 0 then return before .. after end
  local width = digitsFor(units)
  if width > log.unitsWidth then
    -- Write the units of all other entries with more digits.
    local each = "(" .. string.rep(".", log.timeWidth) .. ")(" .. string.rep(".", log.unitsWidth) .. ")"
    local wider = "%1" .. string.rep("0", width - log.unitsWidth) .. "%2"
    before = digits(width, 1) .. string.gsub(string.sub(before, 2), each, wider)
    after = string.gsub(after, each, wider)
  end
  return before .. digits(fmod(atMs, log.turnMs), log.timeWidth) .. digits(units, max(width, log.unitsWidth)) .. after
end

-- Replaces all entries from a place on with one entry at the current time, which has their units plus `units`.
-- Returns the start, previous and current count, and parts.
local function withLast(log, current, from, units)
  local last = unitsBetween(log, from, log.last) + units
  return nowMs, 0, current + units, replaced(log, from, log.last, nowMs, last)
end

-- Returns the state at the current time, and whether the clock went back.
local function logNow(policy, startMs, current, parts)
  if current == 0 or parts == "" then return nowMs, 0, 0, false, "" end
  local log = logOf(policy, startMs, parts)
  if startMs > nowMs then
    local start, previous, units, text = withLast(log, current, placeOf(log, nowMs), 0)
    return start, previous, units, true, text
  end
  local oldestMs = nowMs - policy.windowMs
  if timeAt(log, FIRST) >= oldestMs then return startMs, 0, current, false, parts end
  local to = FIRST + log.width
  -- Usually, at most one entry has passed.
  if to < log.last and timeAt(log, to) < oldestMs then to = placeOf(log, oldestMs) end
  if to == log.last then return nowMs, 0, 0, false, "" end
  return startMs, 0, current - unitsBetween(log, FIRST, to), false, replaced(log, FIRST, to, nowMs, 0)
end

-- Returns the time at which the latest entry leaves the window.
local function logEndMs(policy, startMs, parts)
  if parts == "" then return startMs + policy.windowMs + 1 end
  local log = logOf(policy, startMs, parts)
  return timeAt(log, log.last - log.width) + policy.windowMs + 1
end

-- Returns the start, current count and parts after taking units at the current time.
local function logWith(policy, startMs, current, parts, units)
  -- A later charge for this request is added to the entry at this instant.
  if units == 0 then return nowMs, current, parts end
  local log = logOf(policy, startMs, parts)
  local from = log.last
  if parts ~= "" and timeAt(log, from - log.width) == nowMs then from = from - log.width end
  local start, _, count, text = withLast(log, current, from, units)
  return start, count, text
end

-- Returns the state without `units` that were taken at `afterMs`, or nothing if these units have passed.
local function logWithout(policy, startMs, current, parts, units, afterMs)
  local takenMs = units < 0 and min(afterMs, nowMs) or afterMs
  local log = logOf(policy, startMs, parts)
  local from = placeOf(log, takenMs)
  local isThere = from < log.last and timeAt(log, from) == takenMs
  if not isThere and (units >= 0 or takenMs < nowMs - policy.windowMs) then return end
  local before = isThere and unitsAt(log, from) or 0
  local left = max(0, before - units)
  if current - before + left < 0 then return end
  local text = replaced(log, from, isThere and from + log.width or from, takenMs, left)
  if text == "" then return nowMs, 0, 0, "" end
  return max(startMs, takenMs), 0, current - before + left, text
end

-- Removes a number of the oldest units. Returns the start, current count and parts.
local function logWithoutOldest(policy, startMs, current, parts, units)
  local log = logOf(policy, startMs, parts)
  local rest, place, there = units, FIRST, 0
  while place < log.last do
    there = unitsAt(log, place)
    if there > rest then break end
    rest, place = rest - there, place + log.width
  end
  if place >= log.last then return nowMs, 0, "" end
  return startMs, current - units, replaced(log, FIRST, place + log.width, timeAt(log, place), there - rest)
end

-- Returns the state after counting refused units. The newest units stay, and the oldest units are dropped.
local function logWithRejected(policy, startMs, current, parts, units)
  local surplus = current + units - max(policy.limit, current)
  startMs, current, parts = logWithoutOldest(policy, startMs, current, parts, surplus)
  startMs, current, parts = logWith(policy, startMs, current, parts, units)
  return startMs, 0, current, parts
end
