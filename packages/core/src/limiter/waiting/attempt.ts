import { algorithmOf } from "../../algorithms/kinds.ts"
import type { Decision, PolicyCheck } from "../../decision/decision.ts"
import type { RuleCheck } from "../../decision/rule-check.ts"

/**
 * Maximum time, in milliseconds, for which a refusal is trusted that may end at any moment. A refusal may do so while
 * the store is unavailable or there is no spare capacity.
 */
const PASSING_MS = 1_000

/**
 * The first and the longest delay, in milliseconds, between two store calls of a request that waits for a permit. The
 * permits of other processes are released at unknown times, so the delay doubles from 5 to 80 ms and then is 100 ms.
 */
const [FIRST_RETRY_MS, LONGEST_RETRY_MS] = [5, 100]

let made = 0

/** The latest store call of a waiting request. The call determines how long its refusal is trusted. */
export interface Attempt {
  readonly ruleChecks: readonly RuleCheck[]
  /** The position of this call in the order of all store calls. */
  readonly number: number
  /** The time at which the store responded, by the store's clock. */
  answeredMs: number
  /** The delay before the next store call if a permit is missing, in milliseconds. */
  readonly retryMs: number
}

/** Begins a store call for these checks. `earlier` is the previous attempt of the same request. */
export function startAttempt(ruleChecks: readonly RuleCheck[], earlier?: Attempt): Attempt {
  const retryMs = earlier === undefined ? FIRST_RETRY_MS : Math.min(2 * earlier.retryMs, LONGEST_RETRY_MS)
  return { ruleChecks, number: made++, answeredMs: 0, retryMs }
}

/** Returns the number of the next attempt. */
export function nextAttempt(): number {
  return made
}

/** The refusal that is trusted for the longest time. */
interface LongestRefusal {
  readonly ruleCheck: RuleCheck
  /** Calling the store again before this time has passed is pointless, unless `mayEndSooner` is true. */
  readonly trustedMs: number
  /** Whether the refusal may end before that, because permits may be released at any time. */
  readonly mayEndSooner: boolean
}

/** Returns the refusal of a rule check in `awaited` that is trusted for the longest time. */
export function longestRefusal(
  attempt: Attempt,
  { degraded, retryAfterMs, checks }: Decision,
  awaited: readonly RuleCheck[],
): LongestRefusal {
  let longestMs = 0
  let by: RuleCheck | undefined
  let mayEndSooner = false
  for (const check of checks) {
    if (check.allowed) continue
    const ruleCheck = awaited.find((each) => each.policy.name === check.policy)
    if (ruleCheck === undefined) continue
    const lacksPermit = check.refusal === "in-flight"
    const waitMs = lacksPermit ? attempt.retryMs : trustedOf(attempt, check)
    if (waitMs <= longestMs) continue
    longestMs = waitMs
    by = ruleCheck
    mayEndSooner = lacksPermit
  }
  const trustedMs = degraded ? Math.min(retryAfterMs, PASSING_MS) : longestMs
  return { ruleCheck: by ?? (awaited[0] as RuleCheck), trustedMs, mayEndSooner }
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
