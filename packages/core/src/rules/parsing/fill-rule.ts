import { ALGORITHMS, holdsAdmitted, type RuleAlgorithm } from "../../algorithms/kinds.ts"
import { anchorOf, DEFAULT_ANCHOR } from "../../ground/calendar.ts"
import { type ParsedThrottle, PERMITS } from "../../ground/policy.ts"
import type { Calendar, CalendarRule, ParsedRule, StorableRule } from "../rule.ts"
import type { Throttle } from "../throttle.ts"
import { fillMatch } from "./match-members.ts"
import { given } from "./member.ts"
import { fillOverrides } from "./override-members.ts"
import { fillPenalty } from "./penalty-members.ts"
import { fillRejection } from "./rejection-members.ts"
import { RULE_MEMBERS } from "./rule-members.ts"
import { fieldsOf, ruleName } from "./rule-name.ts"
import { windowMsOf } from "./units.ts"

const SECOND_MS = 1_000
const MAX_WAITING = 100
const MAX_WAIT_MS = 10_000

/** Members that `fillRule` fills in, because their values depend on other members or are copied. */
const FILLED = [
  "name",
  "field",
  "window",
  "per",
  "timeZone",
  "anchor",
  "concurrent",
  "hold",
  "throttle",
  "penalty",
  "notify",
  "match",
  "overrides",
  "rejection",
]
/** The other members, each with its default. */
const PLAIN = Object.entries(RULE_MEMBERS)
  .filter(([name]) => !FILLED.includes(name))
  .map(([name, member]) => [name as keyof StorableRule, member.default] as const)

/**
 * True if the window is a number below 1,000, which is probably a mistake. If the author meant seconds, no client
 * would ever reach the limit.
 */
export function lacksUnit({ window }: StorableRule): boolean {
  return typeof window === "number" && window < SECOND_MS
}

/** Returns the rule with its defaults. The caller has checked the rule. */
export function fillRule(rule: StorableRule): ParsedRule {
  const { concurrent, hold = RULE_MEMBERS.hold.default } = rule
  const { throttle, penalty, notify, match, overrides, rejection } = rule
  const plain: Record<string, unknown> = {}
  // Copy the members in a loop. Rules are frozen, and spreading a frozen object takes several times as long.
  for (const [name, fallback] of PLAIN) {
    const value = rule[name] ?? fallback
    if (value !== undefined) plain[name] = value
  }
  const isInFlight = concurrent !== undefined
  if (isInFlight) Object.assign(plain, { limit: concurrent, algorithm: "in-flight", counts: PERMITS })
  const { algorithm, allow, deny, buckets: given } = plain as unknown as ParsedRule
  if (rule.per !== undefined) plain.algorithm = "fixed-window"
  const longestMs = windowMsOf(isInFlight ? { window: hold } : rule) as number
  // A permit lasts for one to two windows after it was taken or renewed.
  const windowMs = isInFlight ? Math.ceil(longestMs / 2) : longestMs
  const { defaultBuckets } = ALGORITHMS[algorithm]
  const buckets = given ?? (defaultBuckets && Math.min(defaultBuckets, windowMs))
  const filled = {
    ...plain,
    name: ruleName(rule),
    windowMs,
    ...(typeof rule.window === "function" && { windowOf: rule.window }),
    ...(rule.per !== undefined && { calendar: fillCalendar(rule) }),
    ...(lacksUnit(rule) && { lacksUnit: true }),
    fields: fieldsOf(rule.field),
    ...(buckets !== undefined && { buckets }),
    throttle: fillThrottle(throttle ?? (holdsAdmitted(algorithm) ? { kind: "queue" } : "hard"), algorithm),
    ...(penalty !== undefined && { penalty: fillPenalty(penalty, longestMs) }),
    ...(notify !== undefined && { notify: [...notify].sort((one, other) => one - other) }),
    ...(match !== undefined && { match: fillMatch(match) }),
    allow: [...allow],
    deny: [...deny],
    ...(overrides !== undefined &&
      Object.keys(overrides).length > 0 && { overrides: fillOverrides(overrides) }),
    ...(rejection !== undefined && { rejection: fillRejection(rejection) }),
  }
  // `RULE_MEMBERS` contains the defaults of all other members.
  return filled as unknown as ParsedRule
}

function fillCalendar({ per, timeZone = "UTC", anchor }: Omit<CalendarRule, "field">): Calendar {
  const fixed = typeof anchor === "function" ? anchor : anchorOf(per, anchor)
  return { per, timeZone, anchor: fixed ?? DEFAULT_ANCHOR[per] }
}

function fillThrottle(throttle: Throttle, algorithm: RuleAlgorithm): ParsedThrottle {
  if (typeof throttle === "string") return { kind: throttle }
  // By default, no requests wait in front of a leaky bucket, because the bucket itself holds up to `burst` units.
  const line = { maxWaiting: holdsAdmitted(algorithm) ? 0 : MAX_WAITING, maxWaitMs: MAX_WAIT_MS }
  if (throttle.kind === "queue") return { ...line, ...given(throttle) } as ParsedThrottle
  const queue = throttle.kind === "hard" ? undefined : throttle.queue
  return {
    ...given(throttle),
    ...(queue !== undefined && { queue: { ...line, ...given(queue) } }),
  } as ParsedThrottle
}
