-- Writes the first units of a window, with the TTL that INCRBY does not set. Returns the state.
local function begin(key, policy, previous, units)
  local state = previous * PREVIOUS + units
  local endsMs = policy.alignedMs + (policy.kind == SLIDING and 2 or 1) * policy.windowMs
  local text, lastsMs = integer(policy.base + state), integer(endsMs - nowMs)
  if previous > 0 then
    redis.call("SET", key, text, "PX", lastsMs)
  else
    -- INCRBY may have created the key, without a TTL.
    orForget(key, nil, "SET", key, text, "PX", lastsMs)
  end
  return state
end

-- Returns the count of the previous window, and how much of it still counts now. Applies if INCRBY of `units` found a
-- counter of that window, or no counter. Returns nothing in any other case.
local function previousOf(key, policy, value, units)
  -- The key did not exist, or it held 0.
  if value == units then return 0, 0 end
  if policy.kind ~= SLIDING or not policy.leftMs or type(value) ~= "number" then return end
  local rest = value - policy.lastBase - units
  if rest < 0 or rest >= WINDOW then return end
  if outlives(key, policy.alignedMs, CODES / 2 * policy.windowMs) then return end
  local previous = rest % PREVIOUS
  return previous, floor(previous * policy.leftMs / policy.windowMs)
end
