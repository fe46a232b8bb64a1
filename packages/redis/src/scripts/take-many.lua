-- The fastest path for a call of several keys, each with one check that can be counted in place. This path is
-- separate because creating the functions of the other parts takes as long as counting fifteen keys. The rest of the
-- script continues with the first key that cannot be counted in place. By then, `quickDone` keys are counted, and
-- `quickAnswer` contains their states. `quickValue` is the result of INCRBY or HINCRBY on the next key, if that
-- command has run.

if not quickValue then
  if untilMs > 0 and nowMs > untilMs then return { nowMs } end

  local pcall = redis.pcall
  quickAnswer = { nowMs }
  -- The entries follow the policies, each of which has four numbers.
  local position = 5 + 4 * input[4]
  local left = input[3] == 0 and input[position] or -1
  while left > 0 do
    local times, count, place = input[position + 1], input[position + 2], 1 + 4 * input[position + 3]
    local kind, limit, windowMs, cost = input[place], input[place + 1], input[place + 2], input[position + 4]
    local units = cost * times
    if times == 0 or cost == 0 or cost > limit then break end
    if kind <= FIXED and limit <= MOST_PACKED and units <= MOST_PACKED and windowMs <= WIDEST_IN_PLACE then
      local text = tostring(units)
      -- USE window-base
      for i = quickDone + 1, quickDone + count do
        local value = pcall("INCRBY", KEYS[i], text)
        -- USE window-fits
        if not fits then
          quickValue = value
          break
        end
        quickAnswer[i + 1], quickDone = rest, i
      end
    elseif kind == STRICT and limit <= MOST_STRICT and units <= MOST_STRICT then
      local text, stepMs = tostring(units), math.ceil(windowMs / input[place + 3])
      -- USE strict-base
      for i = quickDone + 1, quickDone + count do
        local value = pcall("HINCRBY", KEYS[i], "n", text)
        -- USE strict-fits
        if not fits then
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
