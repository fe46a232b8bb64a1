-- The level of token buckets and leaky buckets: the twin of src/algorithms/bucket.ts. `detail` is the number of units
-- that come back in a window.

-- Returns the milliseconds in which `detail` parts of a unit come back, and the number of parts in one unit.
local function scaleOf(policy, current)
  local unitMs = 1
  if (max(policy.limit, policy.detail, current) + 1) * policy.windowMs > LARGEST then
    unitMs = 1000 * math.ceil(policy.windowMs / 1000 / WIDEST_WINDOW)
  end
  return unitMs, math.ceil(policy.windowMs / unitMs)
end

-- Returns the most units that a bucket can owe: the twin of src/algorithms/most-in-use.ts.
local function mostInUse(policy)
  if policy.detail == 0 then return LARGEST end
  if not policy.mostInUse then
    -- 366 days.
    local ofYear = policy.limit + policy.detail * math.ceil(31622400000 / policy.windowMs)
    policy.mostInUse = max(policy.limit, min(ofYear, floor(LARGEST / math.ceil(policy.windowMs / 1000))))
  end
  return policy.mostInUse
end

-- Returns the number of parts in use.
local function inUse(whole, previous, current)
  return current * whole + min(previous, whole - 1)
end

local function flowed(policy, unitMs, startMs, untilMs)
  return max(0, floor((untilMs - startMs) / unitMs)) * policy.detail
end

-- Returns the previous and current count for a number of parts.
local function levelOf(whole, parts)
  return fmod(parts, whole), floor(parts / whole)
end

-- Returns the state at the current time, and whether the clock went back.
local function levelNow(policy, startMs, previous, current)
  if current > policy.limit and current > mostInUse(policy) then previous, current = 0, policy.limit end
  local unitMs, whole = scaleOf(policy, current)
  local alignedMs = nowMs - fmod(nowMs, unitMs)
  if startMs > alignedMs then
    local nearestMs = min(startMs, alignedMs + policy.windowMs - fmod(policy.windowMs, unitMs))
    return nearestMs, previous, current, nearestMs < startMs
  end
  local parts = max(0, inUse(whole, previous, current) - flowed(policy, unitMs, startMs, alignedMs))
  local rest, units = levelOf(whole, parts)
  return alignedMs, rest, units, false
end

local function levelEndMs(policy, startMs, previous, current)
  if current == 0 and previous == 0 then return startMs end
  -- With a limit of 0, no unit comes back, so store the key for one window.
  if policy.detail == 0 then return startMs + policy.windowMs end
  local unitMs, whole = scaleOf(policy, current)
  return startMs + math.ceil(inUse(whole, previous, current) / policy.detail) * unitMs
end

-- Returns the previous and current count without `units`; the `after…` values are the bucket's state after the units
-- were taken. Returns nothing if all of these units have already come back.
local function levelWithout(policy, startMs, previous, current, units, afterMs, afterPrevious, afterCurrent)
  local unitMs, whole = scaleOf(policy, max(current, afterCurrent) + max(0, -units))
  local left = inUse(whole, afterPrevious, afterCurrent) - flowed(policy, unitMs, afterMs, startMs)
  local parts = max(0, left) - max(0, left - units * whole)
  if parts == 0 then return end
  local rest, owed = levelOf(whole, max(0, inUse(whole, previous, current) - parts))
  if owed > policy.limit and owed > mostInUse(policy) then return 0, mostInUse(policy) end
  return rest, owed
end

local function refilled(policy, startMs, untilMs)
  return max(0, floor((untilMs - startMs) / policy.windowMs)) * policy.detail
end

local function periodicNow(policy, startMs, current)
  local alignedMs = policy.alignedMs
  if current > policy.limit and current > mostInUse(policy) then current = policy.limit end
  if startMs > alignedMs then
    local nearestMs = min(startMs, alignedMs + policy.windowMs)
    return nearestMs, 0, current, nearestMs < startMs
  end
  return alignedMs, 0, max(0, current - refilled(policy, startMs, alignedMs)), false
end

local function periodicEndMs(policy, startMs, current)
  if current == 0 then return startMs end
  if policy.detail == 0 then return startMs + policy.windowMs end
  return startMs + math.ceil(current / policy.detail) * policy.windowMs
end
