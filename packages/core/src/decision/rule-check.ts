import { ceilingOf, type OnStoreFailure, type ParsedThrottle, type Policy } from "../ground/policy.ts"
import type { Check, StoreResult } from "../stores/store.ts"

/** A check that a request asks for, with what its rule says should happen around it. */
export interface RuleCheck extends Check {
  /** What the rule takes for each unit that is asked of it: `cost` is so many times the units. At least 1. */
  readonly unitCost: number
  /** Of who takes as many units as there are, what one of them costs; absent where it is all or nothing. */
  readonly leastCost?: number
  readonly rejectionMessage: string | undefined
  readonly onStoreFailure: OnStoreFailure
  /** What becomes of the request when it does not fit. Of "soft", the policy's `extra` already says how much. */
  readonly throttle: ParsedThrottle
  /**
   * Tells the policy of each moment, under elastic throttling, where it changes with the capacity to spare: `policy` is that
   * of the moment in which the rule check was made.
   */
  readonly policyNow?: (() => Policy) | undefined
  /** The counter of its refusals, where too many of them block the client; never of a shadow rule. */
  readonly penalty?: Policy | undefined
  /** Settled before anything is counted: the rule's own list names the client, or a field is missing. */
  readonly refusal: "denied" | "missing-field" | undefined
  /** The field that is missing. */
  readonly field: string | undefined
}

/** The rule checks of a request that is refused because no rules have been loaded yet. It is known by its identity. */
export const RULES_MISSING: readonly RuleCheck[] = Object.freeze([])

/** What so many units cost under the rule check's rule, held to what is counted exactly. */
export function costOf({ unitCost }: RuleCheck, units: number): number {
  return Math.min(units * unitCost, Number.MAX_SAFE_INTEGER)
}

/** The same rule checks for another number of units, of who would take fewer too. */
export function ruleChecksUpTo(ruleChecks: readonly RuleCheck[], units: number): readonly RuleCheck[] {
  if (ruleChecks === RULES_MISSING) return ruleChecks
  return ruleChecks.map((ruleCheck) => ({
    ...ruleCheck,
    cost: costOf(ruleCheck, units),
    leastCost: ruleCheck.unitCost,
  }))
}

/** The same rule checks, each by the policy that holds now. */
export function ruleChecksNow(ruleChecks: readonly RuleCheck[]): readonly RuleCheck[] {
  return ruleChecks.map((ruleCheck) =>
    ruleCheck.policyNow === undefined ? ruleCheck : { ...ruleCheck, policy: ruleCheck.policyNow() },
  )
}

/** Whether the rule check is refused whatever the counts are. */
export function canNeverFit(ruleCheck: RuleCheck): boolean {
  return (
    ruleCheck.refusal !== undefined ||
    (ruleCheck.cost > ceilingOf(ruleCheck.policy) && !isForLater(ruleCheck))
  )
}

/** Whether the rule check is too dear only as long as there is no capacity to spare. A limit of 0 is not exceeded even then. */
function isForLater({ policy, throttle, cost }: RuleCheck): boolean {
  return throttle.kind === "elastic" && policy.limit > 0 && !(cost > (throttle.ceiling ?? cost))
}

/** Sees how a store has answered, before it is a decision: `asked[i]` is what the answer's i-th check answers. */
export type OnStoreAnswer = (storeChecks: readonly RuleCheck[], answer: StoreResult) => void
