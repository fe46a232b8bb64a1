-- Blocks a client that is refused again and again: the twin of src/algorithms/penalty.ts. A policy's `windowMs` is
-- the time for which refusals are remembered, starting with the first refusal. `detail` contains the durations of
-- blocks. If there are several durations, the client's step selects one. `previous` is the client's step times STEP,
-- plus a rest. During a block, the rest is 1. During a manual block, the count of refusals is 0, and the rest is the
-- block's duration in milliseconds. While a client on a step is not blocked, the rest is twice the milliseconds from
-- the first counted refusal to the last.

local STEP = 281474976710656

local function isBlocked(previous, current)
  local rest = fmod(previous, STEP)
  if current == 0 then return rest > 0 end
  return rest == 1
end

-- If there is only one duration, there are no steps.
local function stepsOf(policy)
  return #policy.detail > 1 and #policy.detail or 0
end

local function stepOf(policy, previous)
  return min(floor(previous / STEP), stepsOf(policy))
end

-- Returns the end of the block, or the time of the last refusal.
local function quietFromMs(policy, startMs, previous, current)
  local rest = fmod(previous, STEP)
  if not isBlocked(previous, current) then return startMs + floor(rest / 2) end
  return startMs + (current == 0 and rest or policy.detail[max(1, stepOf(policy, previous))])
end

local function penaltyEndMs(policy, startMs, previous, current)
  local step = stepOf(policy, previous)
  if step > 0 or isBlocked(previous, current) then
    return quietFromMs(policy, startMs, previous, current) + step * policy.windowMs
  end
  return startMs + (current > 0 and policy.windowMs or 0)
end

-- Returns the state at the current time, and whether the clock went back.
local function penaltyNow(policy, startMs, previous, current)
  local windowMs, isBack = policy.windowMs, startMs > nowMs
  startMs = min(startMs, nowMs)
  if nowMs >= penaltyEndMs(policy, startMs, previous, current) then return nowMs, 0, 0, isBack end
  local fromMs = quietFromMs(policy, startMs, previous, current)
  local currentUntilMs = isBlocked(previous, current) and fromMs or startMs + windowMs
  if nowMs < currentUntilMs then return startMs, previous, current, isBack end
  -- Clamp the time, because the last refusal may be in the future if the clock went back.
  fromMs = min(fromMs, nowMs)
  local stepsDown = floor((nowMs - fromMs) / windowMs)
  return fromMs + stepsDown * windowMs, (stepOf(policy, previous) - stepsDown) * STEP, 0, isBack
end

-- Returns the state after one more refusal.
local function withRefusal(policy, startMs, previous, current)
  if policy.limit == 0 or isBlocked(previous, current) then return startMs, previous, current end
  local step = stepOf(policy, previous)
  if current + 1 >= policy.limit then return nowMs, min(step + 1, stepsOf(policy)) * STEP + 1, current + 1 end
  if current == 0 then startMs = nowMs end
  return startMs, step > 0 and step * STEP + 2 * (nowMs - startMs) or 0, current + 1
end

-- Returns the state with a manual block of `-units` milliseconds. Returns nothing if the current block lasts at least
-- as long.
local function penaltyWithout(policy, startMs, previous, current, units)
  local isNow = isBlocked(previous, current)
  local restMs = isNow and quietFromMs(policy, startMs, previous, current) - nowMs or 0
  if -units > restMs then return nowMs, stepOf(policy, previous) * STEP - units, 0 end
end

-- True if these scripts can have written the counts. There must be space for one more refusal.
local function isSoundPenalty(previous, current)
  local rest = fmod(previous, STEP)
  if current == 0 then return rest <= LONGEST_BLOCK end
  return current < LARGEST and (rest <= 1 or (previous > STEP and fmod(rest, 2) == 0))
end
