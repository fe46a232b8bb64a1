-- A window that is divided into n sub-windows: the twin of src/algorithms/sub-windows.ts.

-- Returns the state at the current time, and whether the clock went back.
local function subWindowsNow(policy, startMs, previous, current, parts)
  local alignedMs, most = policy.alignedMs, policy.detail
  if startMs == alignedMs then return startMs, previous, current, false, parts end
  if startMs > alignedMs then
    local numbers, before = {}, 0
    for index = (startMs - alignedMs) / policy.stepMs, countOf(parts) - 1 do
      numbers[#numbers + 1] = numberAt(parts, index)
      before = before + numbers[#numbers]
    end
    return alignedMs, before, min(current + previous - before, LARGEST - before), true, pack(numbers, #numbers)
  end
  local by = (alignedMs - startMs) / policy.stepMs
  if by > most or (previous == 0 and current == 0) then return alignedMs, 0, 0, false, "" end
  local left, count = previous + current, countOf(parts)
  local kept = min(count, most - by)
  left = left - sumOf(parts, kept)
  return alignedMs, left, 0, false, shift(parts, by - 1, current, kept)
end

-- Returns the count of the oldest sub-window.
local function oldestOf(policy, parts)
  return numberAt(parts, policy.detail - 1)
end

local function subWindowsEndMs(policy, startMs, current, parts)
  if current > 0 then return startMs + (policy.detail + 1) * policy.stepMs end
  for index = 0, countOf(parts) - 1 do
    if numberAt(parts, index) > 0 then return startMs + (policy.detail - index) * policy.stepMs end
  end
  return startMs
end

-- Returns the state without `units` that the sub-window at `takenInMs` counted, or nothing if it has passed.
local function withoutUnitsOf(policy, startMs, previous, current, parts, units, takenInMs)
  if takenInMs == startMs then return startMs, previous, max(0, current - units), parts end
  local index = (startMs - takenInMs) / policy.stepMs - 1
  if index ~= floor(index) or index < 0 or index >= policy.detail then return end
  local numbers, length = {}, max(countOf(parts), index + 1)
  for i = 1, length do numbers[i] = numberAt(parts, i - 1) end
  local counted = numbers[index + 1]
  numbers[index + 1] = max(0, counted - units)
  return startMs, previous - counted + numbers[index + 1], current, pack(numbers, length)
end
