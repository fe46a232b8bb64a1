import type { CounterState } from "../algorithms/algorithm.ts"
import { algorithmOf } from "../algorithms/kinds.ts"
import { isBlockedByHand } from "../algorithms/penalty.ts"
import { countsRefusals, type Policy } from "../ground/policy.ts"
import type { Counted, StoreResult } from "../stores/store.ts"
import type { PolicyCheck } from "./decision.ts"
import type { RuleCheck } from "./rule-check.ts"

/** The same rule checks, and right after each that has a penalty a check of that: all are decided in one call of the store. */
export function withPenalties(ruleChecks: readonly RuleCheck[]): readonly RuleCheck[] {
  const all: RuleCheck[] = []
  for (const ruleCheck of ruleChecks) {
    all.push(ruleCheck)
    // Who asks for nothing is admitted in a block, too.
    if (ruleCheck.penalty !== undefined && ruleCheck.cost > 0)
      all.push({ ...ruleCheck, policy: ruleCheck.penalty, cost: 1 })
  }
  return all
}

/** True if a refusal of one of the rule checks may count. A penalty that only holds blocks by hand has a limit of 0 and counts none. */
export function countRefusals(ruleChecks: readonly RuleCheck[]): boolean {
  return ruleChecks.some((ruleCheck) => (ruleCheck.penalty?.limit ?? 0) > 0 || countsRefusals(ruleCheck))
}

/** What a store was asked for the rules themselves, and answered. */
export interface Parted {
  readonly storeChecks: readonly RuleCheck[]
  readonly answer: StoreResult
  /** By the place of a rule what its penalty holds; undefined where it has none, or nobody looked at it. */
  readonly penalties: readonly (CounterState | undefined)[]
}

/** Takes the checks of penalties, which `withPenalties` has put in, out of an answer. */
export function partPenalties(storeChecks: readonly RuleCheck[], answer: StoreResult): Parted {
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

/** What a rule says of a request when its penalty holds that: in a block it refuses, whatever it has left. */
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
    refusal: isBlockedByHand(state) ? "blocked" : "penalty",
    remaining: 0,
    retryAfterMs,
    // What was left, of which nothing is told in the block, is there when it ends.
    nextUnitAfterMs: remaining > 0 ? blockedMs : Math.max(check.nextUnitAfterMs, blockedMs),
    resetAfterMs: Math.max(check.resetAfterMs, blockedMs),
    delayMs: 0,
    overLimit: false,
    ...(rejectionMessage !== undefined && { rejectionMessage }),
  }
}
