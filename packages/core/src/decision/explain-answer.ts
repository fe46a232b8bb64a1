import { algorithmOf } from "../algorithms/kinds.ts"
import type { Counted, StoreResult } from "../stores/store.ts"
import type { Decision, PolicyCheck } from "./decision.ts"
import {
  type DecisionMaker,
  DecisionRecord,
  decisionWith,
  RETRY_WHEN_CLOSED_MS,
  type Receipt,
} from "./decision-record.ts"
import { explainCounted, explainUncounted } from "./explain.ts"
import { type Parted, separatePenalties, underPenalty, withPenalties } from "./penalties.ts"
import type { OnStoreAnswer, RuleCheck } from "./rule-check.ts"

/**
 * Returns the checks to send to the store. Nearly always, these are the rule checks themselves, so no array is
 * allocated.
 */
export function storeChecksOf(ruleChecks: readonly RuleCheck[]): readonly RuleCheck[] {
  for (let i = 0; i < ruleChecks.length; i++) {
    const { refusal, penalty } = ruleChecks[i] as RuleCheck
    if (refusal !== undefined || penalty !== undefined) return withPenalties(ruleChecks.filter(isCounted))
  }
  return ruleChecks
}

/**
 * True if the store has to count the rule check. A shadow rule may be settled without counting while other rules
 * count.
 */
export function isCounted(ruleCheck: RuleCheck): boolean {
  return ruleCheck.refusal === undefined
}

/** Returns the verdict on a rule check that is settled without counting. */
export function explainUncountable(ruleCheck: RuleCheck): PolicyCheck {
  const { refusal = "cost" } = ruleCheck
  const waitMs = refusal === "store-failure" ? RETRY_WHEN_CLOSED_MS : Number.POSITIVE_INFINITY
  return explainUncounted(ruleCheck, refusal, waitMs)
}

/**
 * Returns the decision for a store's result to `storeChecks`, which is `storeChecksOf(ruleChecks)`.
 */
export function explainAnswer(
  answer: StoreResult,
  ruleChecks: readonly RuleCheck[],
  storeChecks: readonly RuleCheck[],
  peeked: boolean,
  by: DecisionMaker,
  onAnswer: OnStoreAnswer | undefined,
): Decision {
  // Usually all checks are counted and none of them has a penalty, so no array is allocated.
  if (storeChecks !== ruleChecks)
    return explainParted(separatePenalties(storeChecks, answer), ruleChecks, peeked, by, onAnswer)
  onAnswer?.(ruleChecks, answer)
  const { nowMs, againAfterMs } = answer
  const isTaken = answer.granted && !peeked
  const counted = answer.checks[0]
  // Fast path, because nearly every decision has a single check.
  const checks =
    ruleChecks.length === 1 && counted !== undefined
      ? [explainCounted(ruleChecks[0] as RuleCheck, counted, nowMs, isTaken, againAfterMs)]
      : explainEach(ruleChecks, answer, isTaken)
  return decisionOf(checks, ruleChecks, answer, isTaken, by)
}

function explainEach(
  ruleChecks: readonly RuleCheck[],
  answer: StoreResult,
  isTaken: boolean,
): readonly PolicyCheck[] {
  return ruleChecks.map((ruleCheck, i) => explain(ruleCheck, answer.checks[i], answer, isTaken))
}

/** Returns the result of `explainAnswer` if some rule checks were not counted or have a penalty. */
function explainParted(
  { storeChecks, answer, penalties }: Parted,
  ruleChecks: readonly RuleCheck[],
  peeked: boolean,
  by: DecisionMaker,
  onAnswer: OnStoreAnswer | undefined,
): Decision {
  onAnswer?.(storeChecks, answer)
  const { nowMs } = answer
  const isTaken = answer.granted && !peeked
  let next = 0
  const checks = ruleChecks.map((ruleCheck) => {
    if (!isCounted(ruleCheck)) return explainUncountable(ruleCheck)
    const check = explain(ruleCheck, answer.checks[next], answer, isTaken)
    return underPenalty(check, ruleCheck, penalties[next++], nowMs)
  })
  return decisionOf(checks, storeChecks, answer, isTaken, by)
}

/**
 * Returns the checks of a decision as a peek would have returned them. Used for a decision whose units are refunded
 * immediately.
 */
export function explainGivenBack(decision: Decision): readonly PolicyCheck[] {
  const { ruleChecks, answer } = DecisionRecord.receiptOf(decision) as Receipt
  return decision.checks.map((check) => {
    const i = ruleChecks.findIndex(({ policy }) => policy.name === check.policy)
    const counted = answer.checks[i]
    if (counted === undefined) return check
    const [ruleCheck, { state, taken }] = [ruleChecks[i] as RuleCheck, counted]
    const ageMs = counted.ageMs ?? 0
    const before = algorithmOf(ruleCheck.policy).withoutUnits(
      state,
      ruleCheck.policy,
      taken,
      state,
      answer.nowMs,
    )
    return explainCounted(ruleCheck, { state: before, taken: 0, ageMs }, answer.nowMs, false)
  })
}

function decisionOf(
  checks: readonly PolicyCheck[],
  ruleChecks: readonly RuleCheck[],
  answer: StoreResult,
  isTaken: boolean,
  by: DecisionMaker,
): Decision {
  const degraded = answer.isDegraded === true
  const decision = isTaken
    ? decisionWith(checks, degraded, { by, store: by.store, ruleChecks, answer })
    : new DecisionRecord(checks, degraded, undefined)
  if (degraded) DecisionRecord.madeByStore(decision)
  return decision
}

/**
 * Explains a check. If the store did not read the counter, the check does not refuse and its remaining units are
 * unknown.
 */
function explain(
  ruleCheck: RuleCheck,
  counted: Counted | undefined,
  { nowMs, againAfterMs }: StoreResult,
  isTaken: boolean,
): PolicyCheck {
  return counted === undefined
    ? { ...explainUncounted(ruleCheck, undefined, 0), remaining: undefined }
    : explainCounted(ruleCheck, counted, nowMs, isTaken, againAfterMs)
}
