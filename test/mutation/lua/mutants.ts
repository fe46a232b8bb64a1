import type { Mutant } from "./mutant.ts"

/** By script: a text of it, what is put in its place and, where it is not the differential test, the file in test/redis that goes red. */
type Replacements = Readonly<
  Record<string, readonly (readonly [text: string, replacement: string, suite?: string])[]>
>

const REPLACEMENTS: Replacements = {
  "take-one": [
    ["if quickUntilMs > 0 and quickNowMs > quickUntilMs then", "if false then", "script-time"],
    [
      "(MOST_STRICT + 1) + current <= limit then",
      "(MOST_STRICT + 1) + current <= limit + 1 then",
      "strict-hash",
    ],
    ["if rest > 0 and rest < WINDOW and current > units then", "if rest > 0 and rest < WINDOW then"],
    ["if weighted + current <= limit then", "if weighted + current <= limit + 1 then"],
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
    ["/ policy.windowMs) + current <= policy.limit\n", "/ policy.windowMs) + current <= policy.limit + 1\n"],
    ["for undone = isNumber and i or i - 1, 1, -1 do", "for undone = i - 1, 1, -1 do"],
    ["if checks[undone].isMade then", "if false then"],
    ["local full = base + limit", "local full = base + limit + 1"],
    ["* leftMs / windowMs) + current <= limit\n", "* leftMs / windowMs) + current <= limit + 1\n"],
    ["local granted = room and min(times, floor(room / cost)) or 0", "local granted = room and times or 0"],
  ],
  call: [["nowMs = time[1] * 1000 + floor(time[2] / 1000)", "nowMs = time[1] * 1000", "script-time"]],
  "give-back": [["if untilMs > 0 and nowMs > untilMs then", "if false then", "script-time"]],
  digits: [
    [
      "((byte(text, at) or FIRST_DIGIT) - FIRST_DIGIT)",
      "(byte(text, at) or FIRST_DIGIT) - FIRST_DIGIT",
      "largest-counts",
    ],
  ],
}

/** Every mutant of the scripts. Those are left out that change nothing but speed. */
export const MUTANTS: readonly Mutant[] = Object.entries(REPLACEMENTS).flatMap(([script, list]) =>
  list.map(([text, replacement, suite = "differential"]) => ({
    script,
    text,
    replacement,
    suite: `test/redis/${suite}.test.ts`,
  })),
)
