import { ALGORITHMS, type AlgorithmName, holdsAdmitted } from "../../algorithms/kinds.ts"
import { formatDuration, parseDuration } from "../../ground/duration.ts"
import type { ParsedThrottle, Penalty } from "../../ground/policy.ts"
import type { ParsedRule, Rule, RuleMatch, RuleOverride, RulePenalty, StorableRule } from "../rule.ts"
import type { Throttle } from "../throttle.ts"
import { canonicalField } from "./field-name.ts"
import { fillRejection } from "./rejection-members.ts"
import { mostUnits, percentOf } from "./units.ts"

/** An override in its short or its long form. */
export type Override = number | RuleOverride

const SECOND_MS = 1_000
const MAX_WAITING = 100
const MAX_WAIT_MS = 10_000

/**
 * True if the window is a number below 1,000, which is probably a mistake. If seconds were meant, no client would ever
 * reach the limit.
 */
export function lacksUnit({ window }: StorableRule): boolean {
  return typeof window === "number" && window < SECOND_MS
}

/** Returns the rule with its defaults. The caller has checked it. */
export function fillRule(rule: StorableRule): ParsedRule {
  const {
    burst,
    refill,
    match,
    notify,
    penalty,
    overrides = {},
    rejectionMessage,
    rejection,
    onStoreFailure,
  } = rule
  const windowMs = parseDuration(rule.window) as number
  const algorithm = rule.algorithm ?? "sliding-window"
  const { defaultBuckets } = ALGORITHMS[algorithm]
  const buckets = rule.buckets ?? (defaultBuckets && Math.min(defaultBuckets, windowMs))
  return {
    name: ruleName(rule),
    limit: rule.limit as ParsedRule["limit"],
    windowMs,
    ...(lacksUnit(rule) && { lacksUnit: true }),
    fields: fieldsOf(rule.field),
    onMissing: rule.onMissing ?? "ip",
    algorithm,
    align: rule.align ?? "epoch",
    ...(buckets !== undefined && { buckets }),
    ...(burst !== undefined && { burst }),
    ...(refill === "periodic" && { refill }),
    throttle: fillThrottle(
      rule.throttle ?? (holdsAdmitted(algorithm) ? { kind: "queue" } : "hard"),
      algorithm,
    ),
    countRejected: rule.countRejected ?? false,
    ...(penalty !== undefined && { penalty: fillPenalty(penalty, windowMs) }),
    ...(notify !== undefined && { notify: [...notify].sort((one, other) => one - other) }),
    cost: rule.cost ?? 1,
    ...(match !== undefined && { match: fillMatch(match) }),
    allow: [...(rule.allow ?? [])],
    deny: [...(rule.deny ?? [])],
    ...(Object.keys(overrides).length > 0 && { overrides: fillOverrides(overrides) }),
    ...(rejectionMessage !== undefined && { rejectionMessage }),
    ...(rejection !== undefined && { rejection: fillRejection(rejection) }),
    shadow: rule.shadow ?? false,
    ...(onStoreFailure !== undefined && { onStoreFailure }),
  }
}

/**
 * Returns the name of a valid rule: its own, or one made from field and window, such as "ip-1m". Names are unique
 * within a service.
 */
export function ruleName(rule: StorableRule): string {
  return rule.name ?? (defaultName(rule) as string)
}

/**
 * Returns the fields that a rule's `field` names, in the order written. "service" and an absent field give an empty
 * list.
 */
export function fieldsOf(field: Rule["field"] | undefined): readonly string[] {
  const list = typeof field === "string" ? [field] : (field ?? [])
  return list.filter((name) => name !== "service").map(canonicalField)
}

/** Returns the default name, such as "ip-1m", "ip+route-1m" or "service-1d"; undefined if the window is invalid. */
export function defaultName({ field, window }: Partial<Rule>): string | undefined {
  const windowMs = parseDuration(window)
  return windowMs === undefined
    ? undefined
    : `${fieldsOf(field).join("+") || "service"}-${formatDuration(windowMs)}`
}

function fillThrottle(throttle: Throttle, algorithm: AlgorithmName): ParsedThrottle {
  if (typeof throttle === "string") return { kind: throttle }
  // A leaky bucket itself holds as many requests as it has room for.
  const line = { maxWaiting: holdsAdmitted(algorithm) ? 0 : MAX_WAITING, maxWaitMs: MAX_WAIT_MS }
  // A checked throttle has no undefined members.
  if (throttle.kind === "queue") return { ...line, ...throttle } as ParsedThrottle
  const queue = throttle.kind === "hard" ? undefined : throttle.queue
  return { ...throttle, ...(queue !== undefined && { queue: { ...line, ...queue } }) } as ParsedThrottle
}

function fillPenalty({ refusals, within, for: blocked }: RulePenalty, windowMs: number): Penalty {
  const withinMs = within === undefined ? windowMs : (parseDuration(within) as number)
  return { refusals, withinMs, forMs: [blocked].flat().map((each) => parseDuration(each) as number) }
}

function fillOverrides(overrides: NonNullable<Rule["overrides"]>): ReadonlyMap<string, Override> {
  const filled = new Map<string, Override>()
  for (const value in overrides) {
    filled.set(value, shortest(overrides[value] as Override))
  }
  return filled
}

/** Returns a copy of an override, in its short form if it has no burst of its own. */
export function shortest(override: Override): Override {
  const [limit, burst] = [limitOf(override), burstOf(override)]
  return burst === undefined ? limit : { limit, burst }
}

/** Returns the limit of an override. */
export function limitOf(override: Override): number {
  return typeof override === "number" ? override : override.limit
}

/** Returns the burst of an override, if it has its own. */
export function burstOf(override: Override | undefined): number | undefined {
  return typeof override === "object" ? override.burst : undefined
}

function fillMatch(match: NonNullable<StorableRule["match"]>): RuleMatch {
  const { methods, path, fields, when }: RuleMatch = typeof match === "function" ? { when: match } : match
  return {
    ...(when !== undefined && { when }),
    ...(methods !== undefined && { methods: [...new Set(methods.map((method) => method.toUpperCase()))] }),
    ...(path !== undefined && { path }),
    ...(fields !== undefined && {
      fields: Object.fromEntries(
        Object.entries(fields).map(([field, values]) => [canonicalField(field), [...values]]),
      ),
    }),
  }
}

/** Returns the most units that a rule with this limit ever admits at once. No request may cost more. */
export function mostAdmitted(rule: ParsedRule, limit: number): number {
  const { throttle } = rule
  if (limit === 0) return 0
  const capacity = capacityUnder(rule, limit)
  if (throttle.kind === "soft") return capacity + percentOf(limit, throttle.percent)
  if (throttle.kind === "elastic") return Math.max(capacity, throttle.ceiling ?? mostCounted(rule, capacity))
  return capacity
}

/** Returns the units that fit into an unused counter under this limit. Of several clients with the limit, the least. */
function capacityUnder({ overrides, burst, limit: own }: ParsedRule, limit: number): number {
  let least = typeof own === "number" && own !== limit ? Number.POSITIVE_INFINITY : (burst ?? limit)
  for (const override of overrides?.values() ?? []) {
    if (limitOf(override) === limit) least = Math.min(least, burstOf(override) ?? burst ?? limit)
  }
  return Number.isFinite(least) ? least : (burst ?? limit)
}

/**
 * Returns the default ceiling of an elastic rule: the most units that are counted exactly with the unit of time that
 * the limit alone needs. A bucket keeps its level in parts of that unit, so it must not change with the load. If the
 * limit varies, `capacity` is undefined, and the ceiling is the highest of any limit.
 */
export function mostCounted({ algorithm, windowMs }: ParsedRule, capacity: number | undefined): number {
  const inMs = Math.floor(Number.MAX_SAFE_INTEGER / windowMs) - 1
  return capacity !== undefined && capacity <= inMs ? inMs : mostUnits(algorithm, windowMs)
}
