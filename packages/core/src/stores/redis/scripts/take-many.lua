-- The quickest way for a call of several keys, each of one check that can be counted in place: to make the functions below takes as
-- long as to count fifteen keys. Where it comes to one that cannot it leaves the rest to what is below: `quickDone` keys are counted,
-- their states are in `quickAnswer`, and INCRBY or HINCRBY has made `quickValue` of the next one, if it has come that far.

if not ARGV[2] then
  local input, pcall = cjson.decode(ARGV[1]), redis.pcall
  quickInput, quickNowMs = input, input[1]
  if quickNowMs < 0 then
    local time = redis.call("TIME")
    quickNowMs = time[1] * 1000 + floor(time[2] / 1000)
  end
  if input[2] > 0 and quickNowMs > input[2] then return { quickNowMs } end
  quickAnswer = { quickNowMs }
  -- Behind the policies, of which each takes four places.
  local position = 5 + 4 * input[4]
  local left = input[3] == 0 and input[position] or -1
  while left > 0 do
    local times, count, place = input[position + 1], input[position + 2], 1 + 4 * input[position + 3]
    local kind, limit, windowMs, cost = input[place], input[place + 1], input[place + 2], input[position + 4]
    local units = cost * times
    if times == 0 or cost == 0 or cost > limit then break end
    if kind <= FIXED and limit <= MOST_PACKED and units <= MOST_PACKED and windowMs <= WIDEST_IN_PLACE then
      local text, elapsedMs = tostring(units), quickNowMs % windowMs
      local base = ((quickNowMs - elapsedMs) / windowMs % CODES + 1) * WINDOW
      for i = quickDone + 1, quickDone + count do
        local value = pcall("INCRBY", KEYS[i], text)
        local state = type(value) == "number" and value - base or -1
        -- Up to the limit there is no previous count, and room for all of the present one.
        if state <= 0 or state > limit then
          local current = state % PREVIOUS
          -- The first units of a window after those of another one change when the key ends.
          if state <= 0 or state >= WINDOW or current <= units or
            floor((state - current) / PREVIOUS * (windowMs - elapsedMs) / windowMs) + current > limit then
            quickValue = value
            break
          end
        end
        quickAnswer[i + 1], quickDone = state, i
      end
    elseif kind == STRICT and limit <= MOST_STRICT and units <= MOST_STRICT then
      local text, stepMs = tostring(units), math.ceil(windowMs / input[place + 3])
      local base = (floor(quickNowMs / stepMs) % STRICT_CODES + 1) * STRICT_CODE
      for i = quickDone + 1, quickDone + count do
        local value = pcall("HINCRBY", KEYS[i], "n", text)
        local rest = type(value) == "number" and value - base or -1
        local current = rest % STRICT_SUM
        -- The first units of a sub-window change when the key ends.
        if rest <= 0 or rest >= STRICT_CODE or current <= units or
          (rest - current) / STRICT_SUM % (MOST_STRICT + 1) + current > limit then
          quickValue = value
          break
        end
        quickAnswer[i + 1], quickDone = value, i
      end
    else
      break
    end
    if quickValue then break end
    position, left = position + 4, left - 1
  end
  if left == 0 then return quickAnswer end
end
