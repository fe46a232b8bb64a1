-- What blocks a client that is refused again and again: the twin of src/algorithms/penalty.ts. A policy's `windowMs` is how
-- long refusals are remembered from the first of them, `detail` how long a block lasts, and `previous` 1 in a block.

local function lastsMs(policy, previous)
  return previous > 0 and policy.detail or policy.windowMs
end

-- The state as it stands now, and whether the clock went back.
local function penaltyNow(policy, startMs, previous, current)
  if current == 0 or nowMs - startMs >= lastsMs(policy, previous) then return nowMs, 0, 0, false end
  return min(startMs, nowMs), previous, current, startMs > nowMs
end

-- The state after one more refusal.
local function withRefusal(policy, startMs, previous, current)
  if previous > 0 then return startMs, previous, current end
  if current + 1 >= policy.limit then return nowMs, 1, current + 1 end
  return current == 0 and nowMs or startMs, 0, current + 1
end
