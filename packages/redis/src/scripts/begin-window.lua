-- Writes the first units of a window, with the TTL that INCRBY does not set. Returns the state.
local function begin(key, policy, previous, units)
  local state = previous * PREVIOUS + units
  local endsMs = policy.alignedMs + (policy.kind <= SLIDING and 2 or 1) * policy.windowMs
  local text, lastsMs = integer(policy.base + state), integer(endsMs - nowMs)
  if previous > 0 then
    redis.call("SET", key, text, "PX", lastsMs)
  else
    -- INCRBY may have created the key without a TTL.
    orForget(key, nil, "SET", key, text, "PX", lastsMs)
  end
  return state
end

-- Returns the count of the previous window, and its share in the sliding window. Returns nothing unless INCRBY of
-- `units` found a counter of that window, or no counter.
local function previousOf(key, policy, value, units)
  local kind, base, leftMs, windowMs = policy.kind, policy.base, policy.leftMs, policy.windowMs
  local elapsedMs = nowMs - policy.alignedMs
  -- USE window-before
  if previous then return previous, previous > 0 and floor(previous * leftMs / windowMs) or 0 end
end
