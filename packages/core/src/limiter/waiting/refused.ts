import type { Decision, PolicyCheck } from "../../decision/decision.ts"
import { DecisionRecord } from "../../decision/decision-record.ts"
import { explainUncounted } from "../../decision/explain.ts"
import { explainGivenBack } from "../../decision/explain-answer.ts"
import type { RuleCheck } from "../../decision/rule-check.ts"

/** The refusal of who would have to wait behind others, under the rules of the rule checks `behind`, for `waitMs` at least. */
export function refusedBehind(
  ruleChecks: readonly RuleCheck[],
  behind: readonly RuleCheck[],
  waitMs: number,
): Decision {
  const checks = ruleChecks
    .filter(({ shadow }) => !shadow)
    .map((ruleCheck) =>
      behind.includes(ruleCheck)
        ? explainUncounted(ruleCheck, "quota", waitMs)
        : explainUncounted(ruleCheck, undefined, 0),
    )
  return new DecisionRecord(checks, false, undefined)
}

/**
 * The refusal of who was granted what it asked for, but would have to be held longer than `longestMs` by one of the rule checks
 * that it waits for. It is given back, so whoever comes when the difference has passed is held just so long. To be made
 * before that.
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

/** What those who wait are told to wait when the service goes: another instance may have taken over by then. */
const RETRY_WHEN_CLOSED_MS = 1_000

/** The refusal of who was waiting when the service stopped to serve. */
export function refusedAtClose(ruleChecks: readonly RuleCheck[]): Decision {
  const checks = ruleChecks
    .filter(({ shadow }) => !shadow)
    .map((ruleCheck) => explainUncounted(ruleCheck, "store-failure", RETRY_WHEN_CLOSED_MS))
  return new DecisionRecord(checks, true, undefined)
}
