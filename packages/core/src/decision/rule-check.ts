import { ceilingOf, type OnStoreFailure, type ParsedThrottle, type Policy } from "../ground/policy.ts"
import type { Check, StoreResult } from "../stores/store.ts"

/** A check of a request, with the settings of its rule that are needed before and after the store call. */
export interface RuleCheck extends Check {
  /** The unit that the rule counts. */
  readonly unit: string
  /**
   * Units that the rule takes for each unit requested, at least 1. `cost` is the number of requested units times
   * `unitCost`.
   */
  readonly unitCost: number
  /**
   * Cost of a single unit, for a request that accepts fewer units than it requests. Absent for all-or-nothing
   * requests.
   */
  readonly leastCost?: number
  readonly rejectionMessage: string | undefined
  readonly onStoreFailure: OnStoreFailure
  /**
   * The treatment of a request that does not fit. For "soft", the policy's `extra` already contains the extra units.
   */
  readonly throttle: ParsedThrottle
  /**
   * Returns the current policy. Present under elastic throttling, where the policy changes with the spare capacity.
   * `policy` is the policy at the time when the rule check was made.
   */
  readonly policyNow?: (() => Policy) | undefined
  /** The policy that counts refusals, if too many refusals block the client. Always undefined for a shadow rule. */
  readonly penalty?: Policy | undefined
  /**
   * The reason for a refusal that is settled before counting. The rule's `deny` list contains the client, a field is
   * missing, or the limit is unknown because its function has failed ("store-failure").
   */
  readonly refusal: "denied" | "missing-field" | "store-failure" | undefined
  /** The missing field. */
  readonly field: string | undefined
}

/** The rule checks of a request that is refused because no rules have been loaded yet. Compared by identity. */
export const RULES_MISSING: readonly RuleCheck[] = Object.freeze([])

/** Returns the cost of `units` under the check's rule, capped at the largest safe integer. */
export function costOf({ unitCost }: Pick<RuleCheck, "unitCost">, units: number): number {
  return Math.min(units * unitCost, Number.MAX_SAFE_INTEGER)
}

/**
 * Returns the rule checks for another number of units of one kind. Used for a request that also accepts fewer of these
 * units than it requests. The checks of other units stay the same.
 */
export function ruleChecksUpTo(
  ruleChecks: readonly RuleCheck[],
  units: number,
  unit: string,
): readonly RuleCheck[] {
  if (ruleChecks === RULES_MISSING) return ruleChecks
  return ruleChecks.map((ruleCheck) =>
    ruleCheck.unit === unit
      ? { ...ruleCheck, cost: costOf(ruleCheck, units), leastCost: ruleCheck.unitCost }
      : ruleCheck,
  )
}

/** Returns the rule checks, each with the policy that is in force now. */
export function ruleChecksNow(ruleChecks: readonly RuleCheck[]): readonly RuleCheck[] {
  return ruleChecks.map((ruleCheck) =>
    ruleCheck.policyNow === undefined ? ruleCheck : { ...ruleCheck, policy: ruleCheck.policyNow() },
  )
}

/** True if the rule check is refused whatever its counter contains. Under a calendar period, it may contain granted units. */
export function isHopeless(ruleCheck: RuleCheck): boolean {
  const { refusal, policy } = ruleCheck
  return refusal !== undefined || (policy.periods === undefined && canNeverFit(ruleCheck))
}

/** True if the rule check is refused whatever is in use, unless units are granted. */
export function canNeverFit(ruleCheck: RuleCheck): boolean {
  return (
    ruleCheck.refusal !== undefined ||
    (ruleCheck.cost > ceilingOf(ruleCheck.policy) && !isForLater(ruleCheck))
  )
}

/**
 * True if the rule check is too expensive only while there is no spare capacity. Even with spare capacity, a limit of 0
 * is never exceeded.
 */
function isForLater({ policy, throttle, cost }: RuleCheck): boolean {
  return throttle.kind === "elastic" && policy.limit > 0 && !(cost > (throttle.ceiling ?? cost))
}

/**
 * Receives a store's result before it becomes a decision. `answer.checks[i]` is the result of `storeChecks[i]`.
 */
export type OnStoreAnswer = (storeChecks: readonly RuleCheck[], answer: StoreResult) => void
