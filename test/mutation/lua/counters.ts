import type { Replacements } from "./mutant.ts"

/** Mutants of the code that reads, counts in and writes counters of every kind. */
export const COUNTERS: Replacements = {
  counter: [
    ["if product <= LARGEST then", "if true then", "ledgers"],
    ["window - floor(elapsedMs / unitMs)", "window - math.ceil(elapsedMs / unitMs)", "ledgers"],
    ["return alignedMs, 0, min(previous + current, LARGEST), true", "return alignedMs, 0, current, true"],
    ["nearestMs = min(startMs, alignedMs + windowMs)", "nearestMs = alignedMs + windowMs"],
    ["(kind == SLIDING and 2 or 1) * policy.windowMs", "policy.windowMs", "ledgers"],
    ["max(1, endsMs - nowMs)", "max(1, endsMs - nowMs + 1)", "ledgers"],
    ['if redis.call("PTTL", key) < leftMs then', "if false then"],
    ["max(current, min(current + units, most))", "min(current + units, most)"],
    ["if kind == LEVEL and current < most then previous = 0 end", ""],
    ["return startMs, max(0, previous - units), current", "return startMs, previous - units, current"],
    ["return startMs, previous, max(0, current - units)", "return startMs, previous, current - units"],
    ["if isLater then back = back - CODES end", ""],
    ["isWindow and start == startMs and current > 0 and now > 0", "isWindow and start == startMs", "ledgers"],
    ['if not value or value == "0" then', "if not value then", "shared-counting"],
    ["current == 0 and min(afterMs, nowMs) or startMs", "startMs", "ledgers"],
    [
      "startMs <= LARGEST and previous <= LARGEST and current <= LARGEST",
      "startMs <= LARGEST",
      "corrupt-values",
    ],
    ["isSound = isSound and fmod(startMs, policy.stepMs) == 0", "", "corrupt-values"],
    ["isSound = isSound and sumOf(parts) == previous", "", "corrupt-values"],
    ["isSound = isSound and previous <= policy.windowMs", "", "corrupt-values"],
    [
      "isSound and current < LARGEST and previous <= (current == 0 and LONGEST_BLOCK or 1)",
      "isSound and current < LARGEST",
      "corrupt-values",
    ],
    ["current == 0 and LONGEST_BLOCK or 1", "LONGEST_BLOCK", "corrupt-values"],
    ["isSound and current < LARGEST and previous", "isSound and previous", "corrupt-values"],
    [
      '(back > FARTHEST_BACK and redis.call("PTTL", key) >= 0) or',
      "back > FARTHEST_BACK or",
      "corrupt-values",
    ],
    [
      'local isLater = (back > FARTHEST_BACK and redis.call("PTTL", key) >= 0) or',
      "local isLater =",
      "corrupt-values",
    ],
    [
      'isSound and previous == 0 and (kind ~= LOG or (current > 0) == (parts ~= ""))',
      'isSound and (kind ~= LOG or (current > 0) == (parts ~= ""))',
      "corrupt-values",
    ],
    [
      'isSound and previous == 0 and (kind ~= LOG or (current > 0) == (parts ~= ""))',
      "isSound and previous == 0",
      "corrupt-values",
    ],
    ["local number = kind <= FIXED and", "local number = kind <= FIRST_HIT and", "corrupt-values"],
    [" or fmod(number, PREVIOUS) > MOST_PACKED then return end", " then return end", "corrupt-values"],
    ["if now < 0 then return end", "", "corrupt-values"],
  ],
  "bucket-level": [
    [
      "local nearestMs = min(startMs, alignedMs + policy.windowMs - fmod(policy.windowMs, unitMs))",
      "local nearestMs = startMs",
    ],
    [
      "local parts = max(0, inUse(whole, previous, current) - flowed",
      "local parts = (inUse(whole, previous, current) - flowed",
    ],
    [
      "math.ceil(inUse(whole, previous, current) / policy.detail)",
      "floor(inUse(whole, previous, current) / policy.detail)",
    ],
    [" - flowed(policy, unitMs, afterMs, startMs)", ""],
    ["math.ceil(current / policy.detail)", "floor(current / policy.detail)"],
    [
      "if policy.detail == 0 then return startMs + policy.windowMs end\n  return",
      "if policy.detail == 0 then return startMs end\n  return",
    ],
    ["nearestMs = min(startMs, alignedMs + policy.windowMs)\n", "nearestMs = startMs\n"],
    [
      "if current > policy.limit and current > mostInUse(policy) then previous, current = 0, policy.limit end",
      "",
      "corrupt-values",
    ],
    ["if owed > policy.limit and owed > mostInUse(policy) then return 0, mostInUse(policy) end", ""],
    [
      "if current > policy.limit and current > mostInUse(policy) then current = policy.limit end",
      "",
      "corrupt-values",
    ],
    ["if policy.detail == 0 then return LARGEST end", ""],
  ],
  digits: [
    [
      "((byte(text, at) or FIRST_DIGIT) - FIRST_DIGIT)",
      "(byte(text, at) or FIRST_DIGIT) - FIRST_DIGIT",
      "largest-counts",
    ],
  ],
  log: [
    ["if timeAt(log, FIRST) >= oldestMs then", "if timeAt(log, FIRST) > oldestMs then"],
    ['if parts ~= "" and timeAt(log, from - log.width) == nowMs then', "if false then"],
    [
      "return timeAt(log, log.last - log.width) + policy.windowMs + 1",
      "return timeAt(log, log.last - log.width) + policy.windowMs",
    ],
    ["local takenMs = units < 0 and min(afterMs, nowMs) or afterMs", "local takenMs = afterMs"],
    ["timeAt(log, place), there - rest)", "timeAt(log, place), there)"],
    ["return max(startMs, takenMs), 0,", "return startMs, 0,"],
    ["(units >= 0 or takenMs < nowMs - policy.windowMs)", "units >= 0"],
    [
      "if timeAt(log, FIRST + middle * log.width) < instantMs",
      "if timeAt(log, FIRST + middle * log.width) <= instantMs",
    ],
    ["if to < log.last and timeAt(log, to) < oldestMs then", "if false then", "sliding-log"],
    ["current + units - max(policy.limit, current)", "current + units - policy.limit"],
    ["if atMs <= lastMs then return false end", "", "corrupt-values"],
    ["return units == current", "return true", "corrupt-values"],
  ],
  "packed-counts": [
    ["parseDigits(packed, last - width + 1, width) == 0 do", "false do", "ledgers"],
    ["while bound <= most do", "while bound < most do", "widening-parts"],
    [
      "if last > 1 and number < 64 ^ width then",
      "if last > 1 and number <= 64 ^ width then",
      "widening-parts",
    ],
    [" and (policy.kind == LOG or (#parts - 1) / width <= policy.detail)", "", "corrupt-values"],
  ],
  penalty: [
    [
      "return min(startMs, nowMs), previous, current, startMs > nowMs",
      "return startMs, previous, current, false",
      "redis-store.contract",
    ],
    ["if policy.limit == 0 or previous > 0 then return startMs, previous, current end", ""],
    ["if current + 1 >= policy.limit then", "if current + 1 > policy.limit then"],
    [
      "return current == 0 and nowMs or startMs, 0, current + 1",
      "return nowMs, 0, current + 1",
      "redis-store.contract",
    ],
  ],
  "strict-hash": [
    [
      'local isLater = (back > policy.detail + FARTHEST_BACK and redis.call("PTTL", key) >= 0) or',
      "local isLater =",
    ],
    [" or\n      outlives(key, endsMs, STRICT_CODES / 2 * policy.stepMs)", "", "strict-clock-back"],
    ['FARTHEST_BACK and redis.call("PTTL", key) >= 0) or', "FARTHEST_BACK) or", "corrupt-values"],
    ["local isThere = piecesOf[key] == pieces", "local isThere = true", "ledgers"],
    ['if not isThere then orForget(key, nil, "PEXPIRE", key, lastsMs) end', "", "ledgers"],
    ["if not parts or sumOf(parts) ~= previous or", "if not parts or", "corrupt-values"],
    [
      " or current < added or current - added > MOST_STRICT then return end",
      " then return end",
      "corrupt-values",
    ],
  ],
  "strict-next": [
    [
      "if kept == 1 or left + units > policy.limit or",
      "if kept == 1 or left + units > policy.limit + 1 or",
      "strict-hash",
    ],
    [
      "local kept = count > detail - back and 1 + (detail - back) * width or last",
      "local kept = last",
      "ledgers",
    ],
    ['rep("0", (back - 1) * width)', 'rep("0", back * width)', "strict-hash"],
    ["left = stays + current", "left = stays", "strict-hash"],
    ["if stays + dropped ~= left or current > MOST_STRICT then return end", "", "corrupt-values"],
    ["if outlives(key, endsMs, STRICT_CODES / 2 * policy.stepMs) then return end", "", "strict-clock-back"],
    ["current >= 64 ^ width then return end", "current > 64 ^ width then return end", "strict-hash"],
  ],
  "sub-windows": [
    ["if by > most or", "if by >= most or", "ledgers"],
    ["local kept = min(count, most - by)", "local kept = count", "ledgers"],
    [
      "return startMs + (policy.detail - index) * policy.stepMs",
      "return startMs + (policy.detail - index + 1) * policy.stepMs",
      "ledgers",
    ],
    ["return numberAt(parts, policy.detail - 1)", "return numberAt(parts, policy.detail - 2)", "ledgers"],
    ["numbers[index + 1] = max(0, counted - units)", "numbers[index + 1] = counted - units"],
    [
      "index < 0 or index >= policy.detail then return end",
      "index < 0 or index > policy.detail then return end",
      "ledgers",
    ],
  ],
  layout: [["local WIDEST_WINDOW = 94000000", "local WIDEST_WINDOW = 940000", "ledgers"]],
}
