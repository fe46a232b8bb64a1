-- The fastest path, for a call of one check that can be counted in place: the twin of packed-call.ts. If the check
-- does not fit, the rest of the script continues with the resulting value. KEYS[1] is the key of the check. ARGV
-- contains:
--   1. Numbers in base 64, as in digits.lua: the kind of counter (1 digit), the window's length (6), the limit (4), the
--      number of sub-windows (2), the time until which the call counts (8), the cost of a request (4), and the number of
--      equal requests (2). Reading one string takes a fifth of the time of reading eight arguments.
--   2. The time at which to decide, if a time is given.
-- Returns one integer for a window if possible, because returning a list takes an eighth of the call's time. The
-- integer is the state plus 2^42 times a number: 1 plus the milliseconds left before `untilMs`, or 1 if the time is
-- given. Otherwise returns { now, state }, and { now, state, 1, 0 } if permits refuse. Returns { now } after `untilMs`.

do
  local kind, w1, w2, w3, w4, w5, w6, l1, l2, l3, l4, d1, d2, u1, u2, u3, u4, u5, u6, u7, u8, c1, c2, c3, c4, t1, t2 =
    string.byte(ARGV[1], 1, 27)
  -- Skip this path if the argument is a JSON list, which begins with a bracket.
  if kind ~= 91 then
    -- The character of a digit is the digit's value plus 48.
    kind = kind - 48
    local windowMs = ((((w1 * 64 + w2) * 64 + w3) * 64 + w4) * 64 + w5) * 64 + w6 - 48 * (64 ^ 6 - 1) / 63
    local limit = ((l1 * 64 + l2) * 64 + l3) * 64 + l4 - 48 * (64 ^ 4 - 1) / 63
    local detail = d1 * 64 + d2 - 48 * 65
    untilMs = ((((((u1 * 64 + u2) * 64 + u3) * 64 + u4) * 64 + u5) * 64 + u6) * 64 + u7) * 64 + u8 - 48 * (64 ^ 8 - 1) / 63
    local cost = ((c1 * 64 + c2) * 64 + c3) * 64 + c4 - 48 * (64 ^ 4 - 1) / 63
    local times = t1 * 64 + t2 - 48 * 65
    givenNow = ARGV[2] and tonumber(ARGV[2]) or -1
    -- USE now
    if untilMs > 0 and nowMs > untilMs then return { nowMs } end

    local units = cost * times
    -- Lua passes a string to a command faster than a number.
    local text = units == 1 and "1" or units
    if kind == STRICT then
      local stepMs = math.ceil(windowMs / detail)
      -- USE strict-base
      local value = redis.pcall("HINCRBY", KEYS[1], "n", text)
      -- USE strict-fits
      if fits then return { nowMs, value } end
      quickValue = value
    else
      -- USE window-base
      local value = redis.pcall("INCRBY", KEYS[1], text)
      -- USE window-fits
      if not fits then
        local key = KEYS[1]
        -- USE window-before
        if previous and previous * leftMs / windowMs < limit + 1 - units then
          local lastsMs = (kind <= SLIDING and 2 or 1) * windowMs - elapsedMs
          rest, fits = previous * PREVIOUS + units, true
          local reply = redis.pcall("SET", key, base + rest, "PX", lastsMs)
          if reply.err then
            -- As in or-forget.lua.
            if previous == 0 then redis.pcall("DEL", key) end
            error(reply.err, 0)
          end
        elseif kind == IN_FLIGHT then
          -- A quick refusal, because refusals by permits are frequent and never cached.
          local state = previous and previous * PREVIOUS or rest - units
          local current = state % PREVIOUS
          if state >= 0 and state < WINDOW and current <= MOST_PACKED and (state - current) / PREVIOUS + current + cost > limit then
            redis.call("DECRBY", key, text)
            return { nowMs, state, 1, 0 }
          end
        end
      end
      if fits then
        -- The integer must stay below 2^53.
        local spareMs = ARGV[2] and 0 or untilMs - nowMs
        if spareMs >= 0 and spareMs < 2046 then return (spareMs + 1) * WINDOW + rest end
        return { nowMs, rest }
      end
      quickValue = value
    end
    input = { givenNow, untilMs, 0, 1, kind, limit, windowMs, detail, 1, times, 1, 1, cost }
  end
end
