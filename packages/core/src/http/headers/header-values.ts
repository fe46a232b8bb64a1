import type { Decision, PolicyCheck } from "../../decision/decision.ts"
import type { HeaderLine } from "../../limiter/options/answer-options.ts"

/** The largest Integer of a structured field: 15 digits (RFC 9651, section 3.3.1). */
const MAX_INTEGER = 999_999_999_999_999

/** The number, held to the 15 digits that a structured field's Integer may have. */
export function fieldInteger(value: number): number {
  return Math.min(value, MAX_INTEGER)
}

/** Whole seconds that last at least `ms`, 1 or more; undefined for Infinity, which has no end to tell. */
export function secondsUntil(ms: number): number | undefined {
  return ms === Number.POSITIVE_INFINITY ? undefined : fieldInteger(Math.max(1, Math.ceil(ms / 1000)))
}

/** A window in whole seconds, rounded up: a client that spreads its requests over it stays within the limit. */
export function windowSeconds(windowMs: number): number {
  return fieldInteger(Math.ceil(windowMs / 1000))
}

/**
 * True if the check's numbers come from its counter. A check that was decided without the shared store, or whose counter the
 * store did not read, says nothing about the quota: a full one must not be claimed.
 */
export function isCounted(decision: Decision, check: PolicyCheck): boolean {
  if (decision.degraded || check.remaining === undefined) return false
  return check.refusal !== "missing-field" && check.refusal !== "store-failure"
}

/**
 * The units that a client may be told are left. A refused check tells 0 even when a cheaper request would fit: with
 * units left the effective window could end after Retry-After, which it must not.
 */
export function remainingTold(check: PolicyCheck): number {
  return check.allowed ? fieldInteger(check.remaining ?? 0) : 0
}

/**
 * The effective window in whole seconds: within it the client can use no more than `remainingTold`
 * (draft-ietf-httpapi-ratelimit-headers-11, parameter t). Undefined when no time makes a difference.
 *
 * With nothing left it is the wait for the next unit. Else it is at least the remaining units' share of the window,
 * so that r / t never invites a faster pace than the policy does: limit 100 in 60 s, 50 left: 30 s.
 */
export function secondsTold(check: PolicyCheck, windowS: number): number | undefined {
  if (!check.allowed) return secondsUntil(check.retryAfterMs)
  const { remaining = 0, nextUnitAfterMs, limit } = check
  if (remaining === 0) return secondsUntil(nextUnitAfterMs)
  const share = Math.ceil((remaining * windowS) / limit)
  return fieldInteger(Math.max(Math.ceil(nextUnitAfterMs / 1000), share))
}

/** Texts of three digits, by their number. */
const THREE_DIGITS: readonly string[] = Array.from({ length: 1000 }, (_, value) =>
  String(value).padStart(3, "0"),
)

/**
 * The digits of a whole number from 0 to 2^53 - 1, put together from texts that are there already. V8 keeps what it has
 * written a number as, thousands of them, so the text of each number that is another one outlives its response: two garbage
 * collections copy it.
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

/** What a rule contributes to the rate limit headers. */
export interface HeaderPolicy {
  /** Printable ASCII. */
  readonly name: string
  /** Quota units per window; undefined when a function yields it per request. */
  readonly limit: number | undefined
  readonly windowMs: number
  /** A shadow rule is in no header. */
  readonly shadow: boolean
}

/**
 * The rate limit headers of one decision, none when no rule applied. `nowMs` yields the present in epoch
 * milliseconds and is asked only where a header names an instant.
 */
export type HeaderWriter = (decision: Decision, nowMs: () => number) => readonly HeaderLine[]
