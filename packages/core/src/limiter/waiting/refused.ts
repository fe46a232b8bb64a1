import { releases } from "../../algorithms/kinds.ts"
import type { Decision, PolicyCheck } from "../../decision/decision.ts"
import { DecisionRecord } from "../../decision/decision-record.ts"
import { explainUncounted } from "../../decision/explain.ts"
import { explainGivenBack } from "../../decision/explain-answer.ts"
import type { RuleCheck } from "../../decision/rule-check.ts"

/**
 * Returns the refusal of a request that would have to wait for at least `waitMs` behind others. `behind` contains the
 * rule checks for which the request would wait.
 */
export function refusedBehind(
  ruleChecks: readonly RuleCheck[],
  behind: readonly RuleCheck[],
  waitMs: number,
): Decision {
  const checks = ruleChecks
    .filter(({ shadow }) => !shadow)
    .map((ruleCheck) =>
      behind.includes(ruleCheck)
        ? explainUncounted(ruleCheck, releases(ruleCheck.policy) ? "in-flight" : "quota", waitMs)
        : explainUncounted(ruleCheck, undefined, 0),
    )
  return new DecisionRecord(checks, false, undefined)
}

/**
 * Returns the refusal of a request whose units were granted, but which an awaited rule would hold longer than
 * `longestMs`. Must be called before the units are refunded. Because of the refund, a request that arrives after
 * `retryAfterMs` is held for exactly `longestMs`.
 */
export function refusedForDelay(
  decision: Decision,
  awaited: readonly RuleCheck[],
  longestMs: number,
): Decision {
  const refused = explainGivenBack(decision).map((check): PolicyCheck => {
    const surplusMs = check.delayMs - longestMs
    const ruleCheck = awaited.find(({ policy }) => policy.name === check.policy)
    if (surplusMs <= 0 || ruleCheck === undefined) return check
    const retryAfterMs = Math.ceil(surplusMs)
    const later = { retryAfterMs, remaining: 0, nextUnitAfterMs: retryAfterMs, delayMs: 0 }
    const { rejectionMessage } = ruleCheck
    return {
      ...check,
      ...later,
      allowed: false,
      refusal: "quota",
      ...(rejectionMessage !== undefined && { rejectionMessage }),
    }
  })
  return new DecisionRecord(refused, decision.degraded, undefined)
}

/**
 * The retry time of requests that were waiting when the service stopped, because another instance may have taken over
 * by then.
 */
const RETRY_WHEN_CLOSED_MS = 1_000

/** Returns the refusal of a request that was waiting when the service stopped serving. */
export function refusedAtClose(ruleChecks: readonly RuleCheck[]): Decision {
  const checks = ruleChecks
    .filter(({ shadow }) => !shadow)
    .map((ruleCheck) => explainUncounted(ruleCheck, "store-failure", RETRY_WHEN_CLOSED_MS))
  return new DecisionRecord(checks, true, undefined)
}
