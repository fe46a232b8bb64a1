import type { Replacements } from "./mutant.ts"

/** Mutants of the scripts that are called, and of what they are told. */
export const TAKING: Replacements = {
  "take-one": [
    ["if quickUntilMs > 0 and quickNowMs > quickUntilMs then", "if false then", "script-time"],
    [
      "(MOST_STRICT + 1) + current <= limit then",
      "(MOST_STRICT + 1) + current <= limit + 1 then",
      "strict-hash",
    ],
    [
      "if rest > 0 and rest < WINDOW and current > units then",
      "if rest > 0 and rest < WINDOW then",
      "ledgers",
    ],
    ["if weighted + current <= limit then", "if weighted + current <= limit + 1 then"],
    [
      "local isQuick = rest > 0 and rest < STRICT_CODE and current > units",
      "local isQuick = rest > 0 and rest < STRICT_CODE",
      "ledgers",
    ],
  ],
  "take-many": [
    ["if input[2] > 0 and quickNowMs > input[2] then", "if false then", "script-time"],
    ["local left = input[3] == 0 and input[position] or -1", "local left = input[position]"],
    [
      "if times == 0 or cost == 0 or cost > limit then break end",
      "if times == 0 or cost > limit then break end",
    ],
    ["limit <= MOST_PACKED and units <= MOST_PACKED", "units <= MOST_PACKED"],
    ["if state <= 0 or state > limit then", "if state <= 0 or state > limit + 1 then", "ledgers"],
    ["state >= WINDOW or current <= units or", "state >= WINDOW or", "ledgers"],
    ["/ windowMs) + current > limit then", "/ windowMs) + current > limit + 1 then"],
    ["quickAnswer[i + 1], quickDone = state, i", "quickAnswer[i + 1], quickDone = state, i + 1"],
    ["rest >= STRICT_CODE or current <= units or", "rest >= STRICT_CODE or", "ledgers"],
    [
      "% (MOST_STRICT + 1) + current > limit then",
      "% (MOST_STRICT + 1) + current > limit + 1 then",
      "strict-hash",
    ],
    ["position, left = position + 4, left - 1", "position, left = position, left - 1"],
  ],
  take: [
    ["(policy.kind == SLIDING and 2 or 1) * policy.windowMs", "policy.windowMs", "ledgers"],
    ["return rest % PREVIOUS", "return floor(rest / PREVIOUS)", "ledgers"],
    [
      "if outlives(key, policy.alignedMs, CODES / 2 * policy.windowMs) then return end",
      "",
      "shared-counting",
    ],
    ["local granted = min(times, floor(limit / cost))", "local granted = times"],
    ["/ policy.windowMs) + current <= policy.limit\n", "/ policy.windowMs) + current <= policy.limit + 1\n"],
    ["for undone = isNumber and i or i - 1, 1, -1 do", "for undone = i - 1, 1, -1 do", "ledgers"],
    ["if made and made[undone] then", "if false then", "ledgers"],
    ["local full = base + limit", "local full = base + limit + 1", "ledgers"],
    ["* leftMs / windowMs) + current <= limit\n", "* leftMs / windowMs) + current <= limit + 1\n", "ledgers"],
    [
      "local granted = room and min(times, floor(room / cost)) or 0",
      "local granted = room and times or 0",
      "ledgers",
    ],
    ["current > cost and", "current >= cost and", "ledgers"],
    ["if state <= 0 or state > check.limit then", "if state <= 0 or state > check.limit + 1 then"],
    ["rest < WINDOW and current > units and", "rest < WINDOW and", "ledgers"],
    ["if not check.isTaken then lack(read + i, 0) end", ""],
    [
      "% (MOST_STRICT + 1) + current <= limit\n",
      "% (MOST_STRICT + 1) + current <= limit + 1\n",
      "strict-hash",
    ],
    [
      "local hasRoom = rest > 0 and rest < STRICT_CODE and current > units",
      "local hasRoom = rest > 0 and rest < STRICT_CODE",
      "ledgers",
    ],
    ["/ policy.windowMs) + cost <= policy.limit\n", "/ policy.windowMs) <= policy.limit\n", "ledgers"],
    ["for earlier = 1, i - 1 do fits = fits and keys[read + earlier] ~= key end", "", "ledgers"],
    ["isQuick = isQuick and cost > 0 and", "isQuick = isQuick and", "ledgers"],
  ],
  "take-with-care": [
    ["if isSame and current > 0 then", "if isSame then", "ledgers"],
    [
      "if policy.countsRejected and granted < times and cost <= policy.limit then",
      "if policy.countsRejected and granted < times then",
    ],
    ["local over = (times - granted) * cost", "local over = 0", "ledgers"],
    ["if current == units and granted > 0 then", "if false then", "ledgers"],
    ['redis.call("DECRBY", key, units)\n', "", "ledgers"],
    [
      'if redis.call("HINCRBY", key, "n", -units) == 0 then',
      'redis.call("HINCRBY", key, "n", -units)\n  if false then',
      "strict-hash",
    ],
    ["return not check.shadow and check.cost <= check.policy.limit and", "return not check.shadow and"],
    ["refused = checks[i - 1] end", "refused = check end"],
    ["check.after = seen[check.key] and seen[check.key].after or check.before", "check.after = check.before"],
    ["elseif not check.shadow then", "else"],
    ["isGranted = isGranted and not isBroken", "", "shared-counting"],
    ["check.isTaken = isGranted and check.isTaken", ""],
    ["if isBack then writeState(check.key, policy, startMs, previous, current, parts) end", ""],
  ],
  call: [
    ["nowMs = time[1] * 1000 + floor(time[2] / 1000)", "nowMs = time[1] * 1000", "script-time"],
    ["not countsRejected and kind <= FIXED and", "kind <= FIXED and"],
    ["kind <= FIXED and limit <= MOST_PACKED", "kind <= FIXED"],
    ["kind == STRICT and limit <= MOST_STRICT", "kind == STRICT"],
    ["countsInHash = isHash and not tellsParts", "countsInHash = isHash"],
    ["+ nowMs - endsMs > byMs", "+ nowMs - endsMs > 2 * byMs", "shared-counting"],
    ["number < 1e14", "number < 1e16", "ledgers"],
  ],
  refund: [
    ["if untilMs > 0 and nowMs > untilMs then", "if false then", "script-time"],
    ["elseif isBack then", "elseif false then"],
    ["units = max(units, min(0, previous + current - LARGEST))", "", "ledgers"],
  ],
  peek: [
    ["if isBack then", "if false then"],
    ["elseif startMs then", "elseif false then"],
  ],
  "or-forget": [
    ['if field then redis.pcall("HDEL", key, field) else redis.pcall("DEL", key) end', "", "lasting-keys"],
  ],
}
