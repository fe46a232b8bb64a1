-- The sliding log: the twin of src/algorithms/sliding-log.ts.

-- The entries of a log, each { time, units }, the oldest first.
local function entriesOf(policy, startMs, parts)
  local entries = {}
  if parts == "" then return entries end
  local timeWidth, unitsWidth = digitsFor(policy.windowMs), parseDigits(parts, 1, 1)
  local turnMs = 64 ^ timeWidth
  for at = 2, #parts, timeWidth + unitsWidth do
    local ageMs = fmod(startMs - parseDigits(parts, at, timeWidth), turnMs)
    entries[#entries + 1] = { startMs - ageMs, parseDigits(parts, at + timeWidth, unitsWidth) }
  end
  return entries
end

-- The state without what was before an instant: start, previous and current count, parts.
local function withoutBefore(policy, oldestMs, startMs, current, parts)
  if parts == "" then return nowMs, 0, 0, "" end
  local timeWidth, unitsWidth = digitsFor(policy.windowMs), parseDigits(parts, 1, 1)
  local turnMs, at = 64 ^ timeWidth, 2
  while at <= #parts and startMs - fmod(startMs - parseDigits(parts, at, timeWidth), turnMs) < oldestMs do
    current = current - parseDigits(parts, at + timeWidth, unitsWidth)
    at = at + timeWidth + unitsWidth
  end
  if at > #parts then return nowMs, 0, 0, "" end
  if at > 2 then parts = string.sub(parts, 1, 1) .. string.sub(parts, at) end
  return startMs, 0, current, parts
end

local function entryText(atMs, units, timeWidth, unitsWidth)
  return digits(fmod(atMs, 64 ^ timeWidth), timeWidth) .. digits(units, unitsWidth)
end

-- The state that has these entries: start, previous and current count, parts.
local function logOf(policy, entries)
  local merged, current, most = {}, 0, 0
  for _, entry in ipairs(entries) do
    if entry[2] > 0 then
      current = current + entry[2]
      local last = merged[#merged]
      if last and last[1] == entry[1] then
        last[2] = last[2] + entry[2]
      else
        last = { entry[1], entry[2] }
        merged[#merged + 1] = last
      end
      most = max(most, last[2])
    end
  end
  if #merged == 0 then return nowMs, 0, 0, "" end
  local timeWidth, unitsWidth = digitsFor(policy.windowMs), digitsFor(most)
  local texts = { digits(unitsWidth, 1) }
  for i, entry in ipairs(merged) do
    texts[i + 1] = entryText(entry[1], entry[2], timeWidth, unitsWidth)
  end
  return merged[#merged][1], 0, current, table.concat(texts)
end

-- The state as it stands now, and whether the clock went back.
local function logNow(policy, startMs, current, parts)
  if current == 0 then return nowMs, 0, 0, false, "" end
  local start, previous, units, text
  if startMs > nowMs then
    local entries = entriesOf(policy, startMs, parts)
    for _, entry in ipairs(entries) do entry[1] = min(entry[1], nowMs) end
    start, previous, units, text = logOf(policy, entries)
  else
    start, previous, units, text = withoutBefore(policy, nowMs - policy.windowMs, startMs, current, parts)
  end
  return start, previous, units, startMs > nowMs, text
end

-- Start, current count and parts with units that are taken now.
local function logWith(policy, startMs, current, parts, units)
  if units == 0 then return startMs, current, parts end
  local unitsWidth = parts ~= "" and parseDigits(parts, 1, 1)
  -- Most are of another millisecond than the latest, and need no more digits than those before.
  if unitsWidth and startMs < nowMs and units < 64 ^ unitsWidth then
    return nowMs, current + units, parts .. entryText(nowMs, units, digitsFor(policy.windowMs), unitsWidth)
  end
  local entries = entriesOf(policy, startMs, parts)
  entries[#entries + 1] = { nowMs, units }
  local start, _, count, text = logOf(policy, entries)
  return start, count, text
end

-- The state without units that were taken then; nothing when they have passed.
local function logWithout(policy, startMs, parts, units, afterMs)
  local entries = entriesOf(policy, startMs, parts)
  local takenMs = units < 0 and min(afterMs, nowMs) or afterMs
  local index = 1
  while entries[index] and entries[index][1] < takenMs do index = index + 1 end
  local entry = entries[index]
  if entry and entry[1] == takenMs then
    entry[2] = max(0, entry[2] - units)
  elseif units < 0 and takenMs >= nowMs - policy.windowMs then
    table.insert(entries, index, { takenMs, -units })
  else
    return
  end
  return logOf(policy, entries)
end

-- The state after units were refused that count: the newest stay, and the oldest go.
local function logWithRejected(policy, startMs, current, parts, units)
  local entries = entriesOf(policy, startMs, parts)
  entries[#entries + 1] = { nowMs, units }
  local surplus = current + units - max(policy.limit, current)
  for _, entry in ipairs(entries) do
    local dropped = min(max(0, surplus), entry[2])
    entry[2], surplus = entry[2] - dropped, surplus - dropped
  end
  return logOf(policy, entries)
end
