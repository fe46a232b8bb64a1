import { algorithmOf } from "../../algorithms/kinds.ts"
import type { Decision, PolicyCheck } from "../../decision/decision.ts"
import type { RuleCheck } from "../../decision/rule-check.ts"

/**
 * Maximum time, in milliseconds, for which a refusal is trusted that may end at any moment. A refusal may do so while
 * the store is unavailable or there is no spare capacity.
 */
const PASSING_MS = 1_000

let made = 0

/** The latest store call of a waiting request. The call determines how long its refusal is trusted. */
export interface Attempt {
  readonly ruleChecks: readonly RuleCheck[]
  /** The position of this call in the order of all store calls. */
  readonly number: number
  /** The time at which the store responded, by the store's clock. */
  answeredMs: number
}

/** Begins a store call for these checks. */
export function startAttempt(ruleChecks: readonly RuleCheck[]): Attempt {
  return { ruleChecks, number: made++, answeredMs: 0 }
}

/** Returns the number of the next attempt. */
export function nextAttempt(): number {
  return made
}

/**
 * Returns the rule check in `awaited` whose refusal is trusted for the longest time, and that time. Calling the store
 * again before this time has passed is pointless.
 */
export function longestRefusal(
  attempt: Attempt,
  { degraded, retryAfterMs, checks }: Decision,
  awaited: readonly RuleCheck[],
): { readonly ruleCheck: RuleCheck; readonly trustedMs: number } {
  let longestMs = 0
  let by: RuleCheck | undefined
  for (const check of checks) {
    const waitMs = trustedOf(attempt, check)
    if (check.allowed || waitMs <= longestMs) continue
    const ruleCheck = awaited.find((each) => each.policy.name === check.policy)
    if (ruleCheck === undefined) continue
    longestMs = waitMs
    by = ruleCheck
  }
  const trustedMs = degraded ? Math.min(retryAfterMs, PASSING_MS) : longestMs
  return { ruleCheck: by ?? (awaited[0] as RuleCheck), trustedMs }
}

/**
 * Returns for how long one refusal is trusted, which is normally its retry time. Under elastic throttling, the retry
 * time refers to the limit, but the request may be admitted earlier by spare capacity or below the ceiling.
 */
function trustedOf(
  { ruleChecks, answeredMs }: Attempt,
  { policy, refusal, retryAfterMs, counts }: PolicyCheck,
): number {
  const ruleCheck = ruleChecks.find((each) => each.policy.name === policy && each.policyNow !== undefined)
  if (refusal !== "quota" || ruleCheck === undefined) return retryAfterMs
  // The limit applies only while there is no spare capacity.
  if (ruleCheck.policy.extra === undefined) return Math.min(retryAfterMs, PASSING_MS)
  if (counts === undefined) return retryAfterMs
  const { policy: wider, cost } = ruleCheck
  return Math.min(retryAfterMs, algorithmOf(wider).retryAfterMs(counts, wider, cost, answeredMs))
}
