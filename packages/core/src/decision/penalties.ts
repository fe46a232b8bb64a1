import type { CounterState } from "../algorithms/algorithm.ts"
import { algorithmOf } from "../algorithms/kinds.ts"
import { blockedByHandMs } from "../algorithms/penalty.ts"
import type { Policy } from "../ground/policy.ts"
import type { Counted, StoreResult } from "../stores/store.ts"
import { countsRefusals } from "../stores/take-together.ts"
import type { PolicyCheck } from "./decision.ts"
import type { RuleCheck } from "./rule-check.ts"

/**
 * Returns the rule checks, each followed by a check of its penalty if the rule has a penalty. The store decides all
 * of them in one call.
 */
export function withPenalties(ruleChecks: readonly RuleCheck[]): readonly RuleCheck[] {
  const all: RuleCheck[] = []
  for (const ruleCheck of ruleChecks) {
    all.push(ruleCheck)
    // A request that costs nothing is admitted during a block, too.
    if (ruleCheck.penalty !== undefined && ruleCheck.cost > 0)
      all.push({ ...ruleCheck, policy: ruleCheck.penalty, cost: 1 })
  }
  return all
}

/**
 * True if a refusal of one of the rule checks may count. A penalty that only stores blocks by an operator has a limit
 * of 0 and counts no refusals.
 */
export function countRefusals(ruleChecks: readonly RuleCheck[]): boolean {
  return ruleChecks.some((ruleCheck) => (ruleCheck.penalty?.limit ?? 0) > 0 || countsRefusals(ruleCheck))
}

/** The store checks and result of the rules themselves, separated from their penalties. */
export interface Parted {
  readonly storeChecks: readonly RuleCheck[]
  readonly answer: StoreResult
  /**
   * The state of each rule's penalty, by the rule's index. Undefined for a rule without a penalty, or if the penalty
   * was not read.
   */
  readonly penalties: readonly (CounterState | undefined)[]
}

/** Removes from a result the checks of penalties that `withPenalties` has added. */
export function separatePenalties(storeChecks: readonly RuleCheck[], answer: StoreResult): Parted {
  const rules: RuleCheck[] = []
  const checks: (Counted | undefined)[] = []
  const penalties: (CounterState | undefined)[] = []
  storeChecks.forEach((ruleCheck, i) => {
    const counted = answer.checks[i]
    if (ruleCheck.policy.algorithm === "penalty") {
      penalties[rules.length - 1] = counted?.state
    } else {
      rules.push(ruleCheck)
      checks.push(counted)
    }
  })
  return { storeChecks: rules, answer: { ...answer, checks }, penalties }
}

/**
 * Returns a rule's verdict under the given state of its penalty. During a block the rule refuses, even if units
 * remain.
 */
export function underPenalty(
  check: PolicyCheck,
  { penalty, rejectionMessage }: RuleCheck,
  state: CounterState | undefined,
  nowMs: number,
): PolicyCheck {
  if (state === undefined) return check
  const blocking = penalty as Policy
  const blockedMs = algorithmOf(blocking).retryAfterMs(state, blocking, 1, nowMs)
  if (blockedMs === 0) return check
  const { remaining = 0 } = check
  // The quota may be used up for longer than the block lasts.
  const retryAfterMs = Math.max(check.retryAfterMs, blockedMs)
  return {
    ...check,
    allowed: false,
    refusal: blockedByHandMs(state) > 0 ? "blocked" : "penalty",
    remaining: 0,
    retryAfterMs,
    // The remaining units are not reported during the block, but are available when the block ends.
    nextUnitAfterMs: remaining > 0 ? blockedMs : Math.max(check.nextUnitAfterMs, blockedMs),
    resetAfterMs: Math.max(check.resetAfterMs, blockedMs),
    delayMs: 0,
    overLimit: false,
    ...(rejectionMessage !== undefined && { rejectionMessage }),
  }
}
