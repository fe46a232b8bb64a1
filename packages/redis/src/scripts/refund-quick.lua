-- The fastest path, for refunds that need only INCRBY. This path is separate because creating the functions of the other
-- parts takes as long as refunding several keys. The rest of the script continues with the first key for which INCRBY is
-- not enough. By then, `quickDone` keys are done. `quickValue` is the result of INCRBY on the next key, if that command
-- has run.

if untilMs > 0 and nowMs > untilMs then return { nowMs } end

do
  local pcall = redis.pcall
  -- The refunds follow the policies, each of which has four numbers.
  local position = 5 + 4 * input[4]
  while input[3] == 0 and not quickValue and KEYS[quickDone + 1] do
    local place, units, afterMs = 1 + 4 * input[position + 1], input[position + 2], input[position + 3]
    local kind, windowMs = input[place], input[place + 2]
    if kind > FIXED or units > MOST_PACKED or -units > MOST_PACKED then break end
    -- USE window-base
    local alignedMs = nowMs - elapsedMs
    -- USE refund-added
    if not added then break end
    local text = tostring(added)
    for i = quickDone + 1, quickDone + input[position] do
      local value = pcall("INCRBY", KEYS[i], text)
      -- USE refund-fits
      if not fits then
        quickValue = value
        break
      end
      quickDone = i
    end
    position = position + 6
  end
  if not KEYS[quickDone + 1] then return { nowMs, 1 } end
end
