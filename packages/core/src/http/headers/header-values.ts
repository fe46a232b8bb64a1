import type { Decision, PolicyCheck } from "../../decision/decision.ts"
import type { HeaderLine } from "../../ground/answer.ts"

/** The largest Integer of a structured field: 15 digits (RFC 9651, section 3.3.1). */
const MAX_INTEGER = 999_999_999_999_999

/** Returns the number, capped at the 15 digits of a structured field's Integer. */
export function fieldInteger(value: number): number {
  return Math.min(value, MAX_INTEGER)
}

/** Converts `ms` to whole seconds, rounded up and at least 1. Returns undefined for Infinity. */
export function secondsUntil(ms: number): number | undefined {
  return ms === Number.POSITIVE_INFINITY ? undefined : fieldInteger(Math.max(1, Math.ceil(ms / 1000)))
}

/**
 * Returns a window in whole seconds, rounded up. A client that spreads its requests over these seconds stays within
 * the limit.
 */
export function windowSeconds(windowMs: number): number {
  return fieldInteger(Math.ceil(windowMs / 1000))
}

/**
 * True if the check's numbers come from its counter. Without the shared store, or if the store did not read the
 * counter, the check says nothing about the quota. In these cases, headers must not claim a full quota.
 */
export function isCounted(decision: Decision, check: PolicyCheck): boolean {
  if (decision.degraded || check.remaining === undefined) return false
  return check.refusal !== "missing-field" && check.refusal !== "store-failure"
}

/**
 * False if the limit function has failed before it ever returned a limit. In that case, headers must not claim a
 * limit.
 */
export function hasLimit({ refusal, limit }: PolicyCheck): boolean {
  return limit > 0 || refusal !== "store-failure"
}

/**
 * Returns the remaining units to report to the client. For a refused check the result is 0, even if a cheaper request
 * would fit. Otherwise the effective window could end after Retry-After, which the draft does not allow.
 */
export function remainingTold(check: PolicyCheck): number {
  return check.allowed ? fieldInteger(check.remaining ?? 0) : 0
}

/**
 * Returns the effective window in whole seconds. Within this window the client can use at most `remainingTold` units
 * (draft-ietf-httpapi-ratelimit-headers-11, parameter t). Undefined if waiting does not help.
 *
 * Without remaining units, the window is the wait for the next unit. With remaining units, the window is at least
 * their share of the policy's window, so that r / t never suggests a faster pace than the policy. For example, the
 * result is 30 s for a limit of 100 per 60 s with 50 units left. The window of a calendar rule is the rest of its
 * period, because people read when their month ends.
 */
export function secondsTold(check: PolicyCheck, windowS: number): number | undefined {
  if (!check.allowed) return secondsUntil(check.retryAfterMs)
  const { remaining = 0, nextUnitAfterMs, limit, per } = check
  if (remaining === 0 || per !== undefined) return secondsUntil(nextUnitAfterMs)
  const share = Math.ceil((remaining * windowS) / limit)
  return fieldInteger(Math.max(Math.ceil(nextUnitAfterMs / 1000), share))
}

/** The strings "000" to "999", indexed by their value. */
const THREE_DIGITS: readonly string[] = Array.from({ length: 1000 }, (_, value) =>
  String(value).padStart(3, "0"),
)

/**
 * Returns the decimal digits of an integer from 0 to 2^53 - 1, concatenated from existing strings. V8 caches the
 * strings of thousands of numbers. With `String(value)`, the string of each new number would outlive its response,
 * and two garbage collections would copy it.
 */
export function decimal(value: number): string {
  let digits = ""
  let rest = value
  while (rest >= 1000) {
    const last = rest % 1000
    digits = THREE_DIGITS[last] + digits
    rest = (rest - last) / 1000
  }
  return rest + digits
}

/** The part of a rule that the rate limit headers need. */
export interface HeaderPolicy {
  /** Printable ASCII. */
  readonly name: string
  /** Quota units per window; undefined when a function returns the limit per request. */
  readonly limit: number | undefined
  /** Undefined when a function returns the window per request, and for calendar periods. */
  readonly windowMs: number | undefined
  /** The unit that the rule counts. */
  readonly unit: string
  /** Whether the rule is a shadow rule. Headers omit shadow rules. */
  readonly shadow: boolean
}

/**
 * A function that returns the rate limit headers of one decision, or an empty array if no rule applied. `nowMs`
 * returns the current time in epoch milliseconds. `nowMs` is only called if a header contains a time.
 */
export type HeaderWriter = (decision: Decision, nowMs: () => number) => readonly HeaderLine[]
