import { weighted } from "../algorithms/exact-counts.ts"
import { type RuleAlgorithm, releases } from "../algorithms/kinds.ts"
import { InvalidOptionError } from "../ground/errors.ts"
import { mustBe, requireValue } from "../ground/option-checks.ts"
import { REQUESTS } from "../ground/policy.ts"
import type { Decision, PolicyCheck, Refusal } from "./decision.ts"
import { isDecision, throwNotADecision } from "./is-decision.ts"

/** An explanation, written for people, of why one rule admitted or refused a request. */
export interface Explanation {
  /** Name of the rule, or "" if no rule made the decision. */
  readonly policy: string
  /**
   * The verdict of the rule: "would-refuse" if a shadow rule is over its limit, and "not-read" if another rule had
   * already refused and this rule's counter is on another server.
   */
  readonly verdict: "admitted" | "refused" | "would-refuse" | "not-read"
  /** The sentence, without a full stop. The sentence contains the rule's name and no key of the client. */
  readonly text: string
}

/** The fields of a decision for a log line, as plain JSON values. The fields contain no key of the client. */
export interface DecisionLogFields {
  /** The verdict of the binding rule. */
  readonly ratelimit: {
    /** Name of the binding rule, or "" if no rule applies. */
    readonly policy: string
    /** Whether the request was admitted. */
    readonly allowed: boolean
    /** Units left under the binding rule; null if no rule applies. */
    readonly remaining: number | null
    /** Quota units per window under the binding rule; null if no rule applies. */
    readonly limit: number | null
    /** The reason why the request was refused. Absent if the request was admitted. */
    readonly refusal?: Refusal
    /** Milliseconds to wait; null if the request can never succeed. Absent if the request was admitted. */
    readonly retryAfterMs?: number | null
    /** Names of shadow rules that would have refused. Absent if no shadow rule would have refused. */
    readonly shadowed?: readonly string[]
  }
}

/**
 * Returns a sentence for each rule of a decision, in the order of the rules. The counts and waits describe the time
 * of the decision. For example: "per-user refused the request: 10 of 10 units are used, 3 of them carried over from
 * the previous minute; the next unit is available in 24.6 s".
 * @throws {@link InvalidOptionError} if the value is not a decision.
 */
export function explainDecision(
  decision: Decision,
  options: {
    /**
     * When the decision was made, in epoch milliseconds. If present, sentences contain the time of day at which a wait
     * ends.
     */
    readonly atMs?: number | undefined
  } = {},
): readonly Explanation[] {
  requireChecks(decision)
  const atMs = readTime(options)
  const { allowed, checks, refusal } = decision
  if (checks.length === 0) return [allowed ? NO_RULE : refusal === "group" ? HELD_BACK : NO_RULES_YET]
  const explanations = checks.map((check) => explanationOf(check, decision, atMs))
  return refusal === "group" ? [...explanations, HELD_BACK] : explanations
}

/**
 * Returns the fields of a decision for the log line of its request. A replay of logs compares its own verdict with
 * these fields.
 *
 * For example, a refused request is `{"ratelimit":{"policy":"per-user","allowed":false,"remaining":0,"limit":10,
 * "refusal":"quota","retryAfterMs":24583}}`.
 * @throws {@link InvalidOptionError} if the value is not a decision.
 */
export function logFields(decision: Decision): DecisionLogFields {
  requireChecks(decision)
  const { policy, allowed, remaining, limit, refusal, retryAfterMs, shadowed } = decision
  return {
    ratelimit: {
      policy,
      allowed,
      remaining: finite(remaining),
      limit: finite(limit),
      ...(refusal !== undefined && { refusal }),
      ...(!allowed && { retryAfterMs: finite(retryAfterMs) }),
      ...(shadowed.length > 0 && { shadowed }),
    },
  }
}

const NO_RULE: Explanation = { policy: "", verdict: "admitted", text: "No rule applies to the request" }
const NO_RULES_YET: Explanation = {
  policy: "",
  verdict: "refused",
  text: "The request was refused, because no rules have been loaded yet",
}
const HELD_BACK: Explanation = {
  policy: "",
  verdict: "refused",
  text: "The request was refused, because another request of its group was refused",
}

function explanationOf(check: PolicyCheck, { degraded }: Decision, atMs: number | undefined): Explanation {
  const { policy, allowed, shadow, remaining, refusal } = check
  if (allowed && remaining === undefined) {
    const text = `${policy} was not read, because another rule had already refused the request`
    return { policy, verdict: "not-read", text }
  }
  const verdict = allowed ? "admitted" : shadow ? "would-refuse" : "refused"
  const did = verdict === "would-refuse" ? "would have refused" : verdict
  const reason =
    refusal === undefined || refusal === "quota" || refusal === "in-flight"
      ? countText(check, atMs)
      : refusalText(check, refusal, atMs, degraded)
  const notes =
    degraded && check.counts !== undefined ? ["the store did not respond, so only this process counted"] : []
  return { policy, verdict, text: [`${policy} ${did} the request: ${reason}`, ...notes].join("; ") }
}

function refusalText(
  check: PolicyCheck,
  refusal: Refusal,
  atMs: number | undefined,
  degraded: boolean,
): string {
  switch (refusal) {
    case "penalty":
      return `the client was refused too often and is blocked for ${waitText(check.retryAfterMs, atMs, "until")}`
    case "blocked":
      return `an operator has blocked the client for ${waitText(check.retryAfterMs, atMs, "until")}`
    case "cost":
      return `it costs ${unitsText(check.cost, check.unit)}, more than the rule can ever grant`
    case "denied":
      return "the rule's deny list has the client"
    case "missing-field":
      return `the field "${check.field}" is missing`
    default:
      return degraded
        ? "the store did not respond, and the rule refuses requests without it"
        : "its limit function has failed, and has not returned a limit before"
  }
}

function countText(check: PolicyCheck, atMs: number | undefined): string {
  const { allowed, cost, retryAfterMs, delayMs, overLimit, ageMs } = check
  const notes = [usedText(check, atMs)]
  if (!allowed && !releases(check)) {
    const what =
      cost === 1 ? `the next ${oneOf(check.unit)} is` : `the ${unitsText(cost, check.unit)} that it needs are`
    notes.push(
      Number.isFinite(retryAfterMs)
        ? `${what} available in ${waitText(retryAfterMs, atMs)}`
        : `no ${oneOf(check.unit)} ever comes back`,
    )
  }
  if (overLimit) notes.push("the request is above the limit but was admitted")
  if (delayMs > 0) notes.push(`the request waits ${lengthText(delayMs)} for its turn`)
  if (ageMs > 0) notes.push(`the count is ${lengthText(ageMs)} old`)
  return notes.join("; ")
}

/** A bucket may contain more units than the limit, so the units in use are unknown. */
const BUCKETS: ReadonlySet<RuleAlgorithm> = new Set(["token-bucket", "leaky-bucket"])

function usedText(check: PolicyCheck, atMs: number | undefined): string {
  const { algorithm, limit, unit, remaining = 0, counts } = check
  if (BUCKETS.has(algorithm)) return `${unitsText(remaining, unit)} ${remaining === 1 ? "is" : "are"} left`
  // Without `counts`, the store was not called.
  if (counts === undefined) return "it was not counted"
  if (releases(check)) {
    const held = `${counts.previous + counts.current} of ${limit}`
    return check.cost === 1 ? `${held} requests are in progress` : `${held} permits are held`
  }
  const { current } = counts
  const carried = carriedOver(check, atMs) ?? Math.max(0, limit - remaining - current)
  const isCarried = algorithm === "sliding-window" && counts.parts === undefined && carried > 0
  const used = isCarried ? current + carried : Math.max(limit - remaining, usedAlone(check))
  const ofThem = isCarried ? `, ${carried} of them carried over from the previous ${windowText(check)}` : ""
  return `${used} of ${limit} ${nounOf(unit)} are used${ofThem}`
}

/**
 * Returns the units of the current window, or of the current sub-window if the counts have parts. 0 for other
 * algorithms.
 */
function usedAlone({ counts, algorithm }: PolicyCheck): number {
  return algorithm === "fixed-window" || algorithm === "sliding-window" ? (counts?.current ?? 0) : 0
}

/** Returns how many units of the previous window count at `atMs`. Undefined if the time is unknown. */
function carriedOver({ counts, limit, windowMs }: PolicyCheck, atMs: number | undefined): number | undefined {
  if (counts === undefined || atMs === undefined) return undefined
  const elapsedMs = Math.min(Math.max(0, Math.floor(atMs) - counts.startMs), windowMs)
  return weighted(counts.previous, elapsedMs, windowMs, limit)
}

const WINDOWS: ReadonlyMap<number, string> = new Map([
  [1_000, "second"],
  [60_000, "minute"],
  [3_600_000, "hour"],
  [86_400_000, "day"],
  [604_800_000, "week"],
])

function windowText({ windowMs }: PolicyCheck): string {
  return WINDOWS.get(windowMs) ?? "window"
}

/** Returns the noun for the units that a rule counts. */
function nounOf(unit: string): string {
  return unit === REQUESTS ? "units" : unit
}

/** Returns the noun for a single unit: "token" for "tokens". */
function oneOf(unit: string): string {
  return nounOf(unit).replace(/s$/, "")
}

function unitsText(units: number, unit: string): string {
  return units === 1 ? `1 ${oneOf(unit)}` : `${units} ${nounOf(unit)}`
}

function waitText(ms: number, atMs: number | undefined, preposition: "at" | "until" = "at"): string {
  if (!Number.isFinite(ms)) return "ever"
  return atMs === undefined ? lengthText(ms) : `${lengthText(ms)}, ${preposition} ${timeText(atMs + ms)}`
}

/** Returns the time of day, or the bare epoch milliseconds if a `Date` cannot represent the time. */
function timeText(ms: number): string {
  const date = new Date(Math.ceil(ms))
  return Number.isNaN(date.getTime()) ? `${ms} ms` : date.toISOString()
}

const UNITS = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
  ["s", 1],
] as const

/** Returns a length of time with its two largest units, rounded up so that no client retries too early. */
function lengthText(ms: number): string {
  const whole = Math.ceil(ms)
  if (whole < 1_000) return `${whole} ms`
  if (whole < 60_000) return `${Math.ceil(whole / 100) / 10} s`
  const seconds = Math.ceil(whole / 1_000)
  // Round up to whole minutes before the units are chosen, so that almost an hour is "1 h".
  const rounded = seconds > 3_540 ? Math.ceil(seconds / 60) * 60 : seconds
  const at = UNITS.findIndex(([, each]) => rounded >= each)
  const [unit, size] = UNITS[at] as (typeof UNITS)[number]
  const [smaller, fraction] = UNITS[at + 1] as (typeof UNITS)[number]
  const rest = Math.ceil(rounded / fraction)
  const perUnit = size / fraction
  const [large, small] = [Math.floor(rest / perUnit), rest % perUnit]
  return small === 0 ? `${large} ${unit}` : `${large} ${unit} ${small} ${smaller}`
}

function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null
}

function requireChecks(decision: unknown): void {
  if (!isDecision(decision)) throwNotADecision(decision)
  const { checks, shadowed }: { readonly checks: unknown; readonly shadowed: unknown } = decision
  const areChecks =
    Array.isArray(checks) && checks.every((check) => typeof check === "object" && check !== null)
  if (!areChecks || !Array.isArray(shadowed)) throwNotADecision(decision)
}

function readTime(options: { readonly atMs?: number | undefined } | null): number | undefined {
  const atMs = options?.atMs
  if (atMs !== undefined) requireValue("atMs", atMs, checkTime)
  return atMs
}

const checkTime = mustBe("a time", "epoch milliseconds, such as Date.now()", Number.isFinite)
