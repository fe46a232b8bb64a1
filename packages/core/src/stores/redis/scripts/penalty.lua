-- Blocks a client that is refused again and again: the twin of src/algorithms/penalty.ts. A policy's `windowMs` is how
-- long refusals are remembered, from the first of them. `detail` is how long a block lasts. During a block, `previous`
-- is 1. In a manual block the count of refusals is 0, and `previous` is the block's length in milliseconds.

local function lastsMs(policy, previous, current)
  if previous > 0 and current == 0 then return previous end
  return previous > 0 and policy.detail or policy.windowMs
end

-- Returns the state at the current time, and whether the clock went back.
local function penaltyNow(policy, startMs, previous, current)
  local isEmpty = current == 0 and previous == 0
  if isEmpty or nowMs - startMs >= lastsMs(policy, previous, current) then return nowMs, 0, 0, false end
  return min(startMs, nowMs), previous, current, startMs > nowMs
end

-- Returns the state after one more refusal.
local function withRefusal(policy, startMs, previous, current)
  if policy.limit == 0 or previous > 0 then return startMs, previous, current end
  if current + 1 >= policy.limit then return nowMs, 1, current + 1 end
  return current == 0 and nowMs or startMs, 0, current + 1
end

-- Returns the state with a manual block of `-units` milliseconds, or nothing if a present block lasts as long.
local function penaltyWithout(policy, startMs, previous, current, units)
  local restMs = previous > 0 and startMs + lastsMs(policy, previous, current) - nowMs or 0
  if -units > restMs then return nowMs, -units, 0 end
end
