import { ALGORITHMS, type AlgorithmName, holdsAdmitted } from "../../algorithms/kinds.ts"
import { parseDuration } from "../../ground/duration.ts"
import type { ParsedThrottle } from "../../ground/policy.ts"
import type { ParsedRule, StorableRule } from "../rule.ts"
import type { Throttle } from "../throttle.ts"
import { fillMatch } from "./match-members.ts"
import { given } from "./member.ts"
import { fillOverrides } from "./override-members.ts"
import { fillPenalty } from "./penalty-members.ts"
import { fillRejection } from "./rejection-members.ts"
import { RULE_MEMBERS } from "./rule-members.ts"
import { fieldsOf, ruleName } from "./rule-name.ts"

const SECOND_MS = 1_000
const MAX_WAITING = 100
const MAX_WAIT_MS = 10_000

/** The members that are the same in a parsed rule, with the defaults of the table. */
type PlainMembers = Omit<ParsedRule, "name" | "windowMs" | "fields" | "throttle">
const DEFAULTS = Object.fromEntries(
  Object.entries(RULE_MEMBERS)
    .filter(([, member]) => member.default !== undefined)
    .map(([name, member]) => [name, member.default]),
)

/**
 * True if the window is a number below 1,000, which is probably a mistake. If seconds were meant, no client would ever
 * reach the limit.
 */
export function lacksUnit({ window }: StorableRule): boolean {
  return typeof window === "number" && window < SECOND_MS
}

/** Returns the rule with its defaults. The caller has checked it, so that it has no undefined members. */
export function fillRule(rule: StorableRule): ParsedRule {
  const { field, window, throttle, penalty, notify, match, overrides = {}, rejection, ...plain } = rule
  const filled = { ...DEFAULTS, ...plain } as PlainMembers
  const { algorithm, allow, deny } = filled
  const windowMs = parseDuration(window) as number
  const { defaultBuckets } = ALGORITHMS[algorithm]
  const buckets = filled.buckets ?? (defaultBuckets && Math.min(defaultBuckets, windowMs))
  return {
    ...filled,
    name: ruleName(rule),
    windowMs,
    ...(lacksUnit(rule) && { lacksUnit: true }),
    fields: fieldsOf(field),
    ...(buckets !== undefined && { buckets }),
    throttle: fillThrottle(throttle ?? (holdsAdmitted(algorithm) ? { kind: "queue" } : "hard"), algorithm),
    ...(penalty !== undefined && { penalty: fillPenalty(penalty, windowMs) }),
    ...(notify !== undefined && { notify: [...notify].sort((one, other) => one - other) }),
    ...(match !== undefined && { match: fillMatch(match) }),
    allow: [...allow],
    deny: [...deny],
    ...(Object.keys(overrides).length > 0 && { overrides: fillOverrides(overrides) }),
    ...(rejection !== undefined && { rejection: fillRejection(rejection) }),
  }
}

function fillThrottle(throttle: Throttle, algorithm: AlgorithmName): ParsedThrottle {
  if (typeof throttle === "string") return { kind: throttle }
  // A leaky bucket itself holds as many requests as it has room for.
  const line = { maxWaiting: holdsAdmitted(algorithm) ? 0 : MAX_WAITING, maxWaitMs: MAX_WAIT_MS }
  if (throttle.kind === "queue") return { ...line, ...given(throttle) } as ParsedThrottle
  const queue = throttle.kind === "hard" ? undefined : throttle.queue
  return {
    ...given(throttle),
    ...(queue !== undefined && { queue: { ...line, ...given(queue) } }),
  } as ParsedThrottle
}
