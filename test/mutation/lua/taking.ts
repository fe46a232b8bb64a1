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
      "local isQuick = rest > 0 and rest < STRICT_CODE and current > units",
      "local isQuick = rest > 0 and rest < STRICT_CODE",
    ],
    ["if rest > 0 and rest < WINDOW and current > units then", "if rest > 0 and rest < WINDOW then"],
    ["if weighted + current <= limit then", "if weighted + current <= limit + 1 then"],
    ["* (windowMs - elapsedMs) / windowMs)", "* (windowMs - elapsedMs + 1) / windowMs)"],
  ],
  take: [
    ["if untilMs > 0 and nowMs > untilMs then", "if false then", "script-time"],
    ["(policy.kind == SLIDING and 2 or 1) * policy.windowMs", "policy.windowMs"],
    ["return rest % PREVIOUS", "return floor(rest / PREVIOUS)"],
    [
      "if outlives(key, policy.alignedMs, CODES / 2 * policy.windowMs) then return end",
      "",
      "shared-counting",
    ],
    ["local granted = min(times, floor(limit / cost))", "local granted = times"],
    ["current > cost and", "current >= cost and"],
    ["/ policy.windowMs) + current <= policy.limit\n", "/ policy.windowMs) + current <= policy.limit + 1\n"],
    ["/ policy.windowMs) + cost <= policy.limit\n", "/ policy.windowMs) <= policy.limit\n"],
    ["for earlier = 1, i - 1 do fits = fits and keys[read + earlier] ~= key end", ""],
    ["for undone = isNumber and i or i - 1, 1, -1 do", "for undone = i - 1, 1, -1 do"],
    ["if checks[undone].isMade then", "if false then"],
    ["local full = base + limit", "local full = base + limit + 1"],
    ["* leftMs / windowMs) + current <= limit\n", "* leftMs / windowMs) + current <= limit + 1\n"],
    ["rest < WINDOW and current > units and", "rest < WINDOW and"],
    ["local granted = room and min(times, floor(room / cost)) or 0", "local granted = room and times or 0"],
    ["if not check.isTaken then lack(read + i, 0) end", ""],
    ["% (MOST_STRICT + 1) + current <= limit\n", "% (MOST_STRICT + 1) + current <= limit + 1\n"],
    [
      "local hasRoom = rest > 0 and rest < STRICT_CODE and current > units",
      "local hasRoom = rest > 0 and rest < STRICT_CODE",
    ],
    ["isQuick = isQuick and cost > 0 and", "isQuick = isQuick and"],
  ],
  "take-with-care": [
    ["if isSame and current > 0 then", "if isSame then"],
    [
      "if policy.countsRejected and granted < times and cost <= policy.limit then",
      "if policy.countsRejected and granted < times then",
    ],
    ["local over = (times - granted) * cost", "local over = 0"],
    ["if current == units and granted > 0 then", "if false then"],
    ['redis.call("DECRBY", key, units)\n', ""],
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
    ["number < 1e14", "number < 1e16"],
  ],
  peek: [
    ["if isBack then", "if false then"],
    ["elseif startMs then", "elseif false then"],
  ],
  "give-back": [
    ["if untilMs > 0 and nowMs > untilMs then", "if false then", "script-time"],
    ["units = max(units, min(0, previous + current - LARGEST))", ""],
    ["elseif isBack then", "elseif false then"],
    ["    else\n      keepState", "    elseif false then\n      keepState"],
  ],
}
