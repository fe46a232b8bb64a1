import { ALGORITHMS, type AlgorithmName, holdsAdmitted } from "../../algorithms/kinds.ts"
import { formatDuration, parseDuration } from "../../ground/duration.ts"
import type {
  Alignment,
  OnMissing,
  OnStoreFailure,
  ParsedThrottle,
  Penalty,
  Refill,
} from "../../ground/policy.ts"
import type { Rule, RuleMatch, RulePenalty, StorableRule, Throttle } from "../rule.ts"
import { canonicalField } from "./field-name.ts"
import { mostUnits, percentOf } from "./units.ts"

/** A rule that has been checked, with every default filled in. What comes after trusts it. */
export interface ParsedRule {
  /** Printable ASCII, unique within the service. */
  readonly name: string
  /** Quota units per window: a positive whole number, or a function whose answer is to be checked at each request. */
  readonly limit: number | ((request: unknown) => unknown)
  /** Length of the window in whole milliseconds. */
  readonly windowMs: number
  /** Whether it is a number below a second, whose unit may have been taken for a second. Absent is no. */
  readonly lacksUnit?: boolean
  /** The fields of the combination, header names in lower case. None is the whole service. */
  readonly fields: readonly string[]
  /** What becomes of a request without one of the fields. */
  readonly onMissing: OnMissing
  /** How it is counted. */
  readonly algorithm: AlgorithmName
  /** Where windows begin; of no meaning but for "fixed-window". */
  readonly align: Alignment
  /** Sub-windows; always there for "sliding-window-strict". */
  readonly buckets?: number
  /** Units that a bucket holds. Absent is the limit. */
  readonly burst?: number
  /** How a token bucket fills. Absent is continuous. */
  readonly refill?: Refill
  /** What becomes of a request that does not fit. */
  readonly throttle: ParsedThrottle
  /** Whether requests that it refuses count too. */
  readonly countRejected: boolean
  /** When a client is blocked for having been refused too often. Absent is never. */
  readonly penalty?: Penalty
  /** Units that one request takes, times the request's own cost. */
  readonly cost: number
  /** Absent when the rule is for every request. Methods in upper case. */
  readonly match?: RuleMatch
  /** Values of the rule's own field that it does not count. */
  readonly allow: readonly string[]
  /** Values of the rule's own field that it always refuses. */
  readonly deny: readonly string[]
  /** Passed to a refused client. */
  readonly rejectionMessage?: string
  /** Whether it decides and reports, and refuses nobody. */
  readonly shadow: boolean
  /** Absent: the limiter's own. */
  readonly onStoreFailure?: OnStoreFailure
}

const SECOND_MS = 1_000
const MAX_WAITING = 100
const MAX_WAIT_MS = 10_000

/** Whether its window is a number that is hardly meant: where windows are seconds, a limit that nobody ever meets. */
export function lacksUnit({ window }: StorableRule): boolean {
  return typeof window === "number" && window < SECOND_MS
}

/** The rule with its defaults. The caller has checked it. */
export function fillRule(rule: StorableRule): ParsedRule {
  const { burst, refill, match, penalty, rejectionMessage, onStoreFailure } = rule
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
    cost: rule.cost ?? 1,
    ...(match !== undefined && { match: fillMatch(match) }),
    allow: [...(rule.allow ?? [])],
    deny: [...(rule.deny ?? [])],
    ...(rejectionMessage !== undefined && { rejectionMessage }),
    shadow: rule.shadow ?? false,
    ...(onStoreFailure !== undefined && { onStoreFailure }),
  }
}

/** The name of a good rule: its own, or the one made from field and window, "ip-1m". No two rules of a service share one. */
export function ruleName(rule: StorableRule): string {
  return rule.name ?? (defaultName(rule) as string)
}

/** The fields that a rule's `field` names, in the order written; "service" and nothing at all are none. */
export function fieldsOf(field: Rule["field"] | undefined): readonly string[] {
  const list = typeof field === "string" ? [field] : (field ?? [])
  return list.filter((name) => name !== "service").map(canonicalField)
}

/** "ip-1m", "ip+route-1m", "service-1d"; undefined where the window is wrong. */
export function defaultName({ field, window }: Partial<Rule>): string | undefined {
  const windowMs = parseDuration(window)
  return windowMs === undefined
    ? undefined
    : `${fieldsOf(field).join("+") || "service"}-${formatDuration(windowMs)}`
}

function fillThrottle(throttle: Throttle, algorithm: AlgorithmName): ParsedThrottle {
  if (typeof throttle === "string") return { kind: throttle }
  switch (throttle.kind) {
    case "hard":
      return { kind: "hard" }
    case "soft":
      return { kind: "soft", percent: throttle.percent }
    case "elastic": {
      const { ceiling, signal } = throttle
      return {
        kind: "elastic",
        ...(ceiling !== undefined && { ceiling }),
        ...(signal !== undefined && { signal }),
      }
    }
    case "queue": {
      // A leaky bucket holds requests itself, as many as it has room for.
      const { maxWaiting = holdsAdmitted(algorithm) ? 0 : MAX_WAITING, maxWaitMs = MAX_WAIT_MS } = throttle
      return { kind: "queue", maxWaiting, maxWaitMs }
    }
  }
}

function fillPenalty({ refusals, within, for: blocked }: RulePenalty, windowMs: number): Penalty {
  const withinMs = within === undefined ? windowMs : (parseDuration(within) as number)
  return { refusals, withinMs, forMs: parseDuration(blocked) as number }
}

function fillMatch({ methods, path, fields }: RuleMatch): RuleMatch {
  return {
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
  const { burst, throttle } = rule
  if (limit === 0) return 0
  const capacity = burst ?? limit
  if (throttle.kind === "soft") return capacity + percentOf(limit, throttle.percent)
  if (throttle.kind === "elastic") return Math.max(capacity, throttle.ceiling ?? mostCounted(rule, capacity))
  return capacity
}

/**
 * Returns the default ceiling of an elastic rule: the most units that are counted exactly without a coarser unit of time than
 * the limit alone needs. A bucket keeps its level in parts of that unit, which must not change with the load. For limits that
 * vary, `capacity` is undefined, and the ceiling is the highest of any limit.
 */
export function mostCounted({ algorithm, windowMs }: ParsedRule, capacity: number | undefined): number {
  const inMs = Math.floor(Number.MAX_SAFE_INTEGER / windowMs) - 1
  return capacity !== undefined && capacity <= inMs ? inMs : mostUnits(algorithm, windowMs)
}
