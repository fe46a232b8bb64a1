import type { Replacements } from "./mutant.ts"

/** Mutants of the scripts that the store calls, and of their arguments. */
export const TAKING: Replacements = {
  formulas: [
    [
      "local fits = rest > units and rest <= limit\n",
      "local fits = rest > 0 and rest <= limit + 1\n",
      "ledgers",
    ],
    ["fits = current > units and", "fits =", "ledgers"],
    ["* leftMs / windowMs) + current <= limit", "* leftMs / windowMs) + current <= limit + 1", "ledgers"],
    ["rest < STRICT_CODE and current > units and", "rest < STRICT_CODE and", "ledgers"],
    ["% (MOST_STRICT + 1) + current <= limit", "% (MOST_STRICT + 1) + current <= limit + 1", "strict-hash"],
  ],
  input: [["nowMs = time[1] * 1000 + floor(time[2] / 1000)", "nowMs = time[1] * 1000", "script-time"]],
  "take-one": [["if untilMs > 0 and nowMs > untilMs then", "if false then", "script-time"]],
  "take-many": [
    ["local left = input[3] == 0 and input[position] or -1", "local left = input[position]"],
    [
      "if times == 0 or cost == 0 or cost > limit then break end",
      "if times == 0 or cost > limit then break end",
    ],
    ["limit <= MOST_PACKED and units <= MOST_PACKED", "units <= MOST_PACKED"],
    ["quickAnswer[i + 1], quickDone = rest, i", "quickAnswer[i + 1], quickDone = rest, i + 1"],
    ["position, left = position + 4, left - 1", "position, left = position, left - 1"],
  ],
  take: [
    ["(policy.kind == SLIDING and 2 or 1) * policy.windowMs", "policy.windowMs", "ledgers"],
    ["local previous = rest % PREVIOUS", "local previous = floor(rest / PREVIOUS)", "ledgers"],
    ["if rest < 0 or rest >= WINDOW then return end", "if rest < 0 then return end", "ledgers"],
    [
      "if outlives(key, policy.alignedMs, CODES / 2 * policy.windowMs) then return end",
      "",
      "shared-counting",
    ],
    ["local granted = min(times, floor(limit / cost))", "local granted = times"],
    [
      'for undone = type(value) == "number" and i or i - 1, 1, -1 do',
      "for undone = i - 1, 1, -1 do",
      "ledgers",
    ],
    ["if made and made[undone] then", "if false then", "ledgers"],
    [
      "granted = previous and min(times, floor((limit - counted) / cost)) or 0",
      "granted = previous and times or 0",
      "ledgers",
    ],
    ["if not check.isTaken then lack(read + i, 0) end", ""],
    ["fits = before and counted + units <= limit", "fits = before and counted <= limit", "ledgers"],
    ["for earlier = 1, i - 1 do fits = fits and keys[read + earlier] ~= key end", "", "ledgers"],
    ["isQuick = isQuick and cost > 0 and", "isQuick = isQuick and", "ledgers"],
  ],
  "take-slow": [
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
    ["not refused.shadow and refused.cost <= refused.policy.limit", "not refused.shadow"],
    ["refused = checks[i - 1] end", "refused = check end"],
    ["check.after = seen[check.key] and seen[check.key].after or check.before", "check.after = check.before"],
    ["elseif not check.shadow then", "else"],
    ["isGranted = isGranted and not isBroken", "", "shared-counting"],
    ["check.isTaken = isGranted and check.isTaken", ""],
    ["if current > LARGEST or (", "if (", "corrupt-values"],
    ["or (not isSame and previous ~= sumOf(parts)) then return end", "then return end", "corrupt-values"],
    ["if isSame and granted < times and previous ~= sumOf(parts) then return end", "", "corrupt-values"],
    [
      "if granted < times and not isSoundRefusal(policy, startMs, current, parts) then return 0, 0 end",
      "",
      "corrupt-values",
    ],
    ["isBroken, check.before, check.after = true, {}, {}", "", "corrupt-values"],
    ["and current >= units and current - units <= MOST_PACKED then", "then", "corrupt-values"],
    ["if isBack then writeState(check.key, policy, startMs, previous, current, parts) end", ""],
  ],
  call: [
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
