import { algorithmOf } from "../algorithms/kinds.ts"
import type { MaybePromise } from "../ground/maybe-promise.ts"
import { ceilingOf } from "../ground/policy.ts"
import type { StoreResult } from "../stores/store.ts"
import type { Decision, PolicyCheck } from "./decision.ts"
import { DecisionRecord } from "./decision-record.ts"
import { type OnStoreAnswer, type RuleCheck, ruleChecksUpTo } from "./rule-check.ts"

/** Takes the units of every rule check, or refuses and takes no units. */
type Take = (ruleChecks: readonly RuleCheck[], onAnswer: OnStoreAnswer) => MaybePromise<Decision>

/** The two ways in which a `Decider` takes units. */
export interface Taking {
  readonly take: Take
  /** Takes the units like `take`, but never counts a refusal, even for rules with `countRejected`. */
  readonly takeIfItFits: Take
}

/**
 * Number of tries before only a single unit is requested. Other clients may take the remaining units between two tries.
 */
const MOST_TRIES = 4

/**
 * Takes as many units of one kind as are available, at most `units`. Each rule charges its own cost for a unit.
 * `ruleChecks` are the checks for one unit. Rules of other units take their full cost, or refuse.
 *
 * All units are requested first. A refusal shows how many units each rule has left, and the smallest of these numbers
 * is requested next. One store call takes the granted units under all rules, or takes no units. Under rules whose
 * refusals count, only the refusal of a single unit is counted.
 */
export async function takeUpTo(
  taking: Taking,
  ruleChecks: readonly RuleCheck[],
  units: number,
  unit: string,
): Promise<Decision> {
  const counted = ruleChecks.filter((ruleCheck) => ruleCheck.unit === unit)
  let wanted = Math.min(units, mostEver(counted))
  for (let tries = 1; ; tries++) {
    let left = 0
    const onAnswer: OnStoreAnswer = (storeChecks, answer) => {
      left = unitsLeft(storeChecks, answer, unit)
    }
    const some = ruleChecksUpTo(ruleChecks, wanted, unit)
    const decision = await (wanted > 1 ? taking.takeIfItFits(some, onAnswer) : taking.take(some, onAnswer))
    if (decision.allowed) return DecisionRecord.telling(decision, wanted)
    if (wanted === 1 || !isTooMuch(decision, unit)) return decision
    wanted = tries < MOST_TRIES ? Math.max(1, Math.min(left, wanted)) : 1
  }
}

/**
 * True if fewer units may be granted, because only rules of this unit refuse. In an outage, the reason is "cost" if an
 * instance's share can never grant as many units.
 */
function isTooMuch({ refusal, checks }: Decision, unit: string): boolean {
  const isOther = (check: PolicyCheck): boolean => !check.allowed && !check.shadow && check.unit !== unit
  return (refusal === "quota" || refusal === "cost") && !checks.some(isOther)
}

/**
 * Returns the units that are granted if no units have been taken. The result is at least one, so that the rule itself
 * refuses the request.
 */
function mostEver(ruleChecks: readonly RuleCheck[]): number {
  let most = Number.POSITIVE_INFINITY
  for (const { policy, unitCost, shadow } of ruleChecks) {
    // In a calendar period, more units than the limit may be granted.
    if (!shadow && policy.periods === undefined)
      most = Math.min(most, Math.floor(ceilingOf(policy) / unitCost))
  }
  return Math.max(1, most)
}

/** Returns the units of one kind that every rule had left, including those above the limit. */
function unitsLeft(
  storeChecks: readonly RuleCheck[],
  { nowMs, checks }: StoreResult,
  counted: string,
): number {
  let least = Number.POSITIVE_INFINITY
  storeChecks.forEach(({ policy, unit, unitCost, shadow }, i) => {
    const state = checks[i]?.state
    if (shadow || unit !== counted || state === undefined) return
    const left = ceilingOf(policy) - algorithmOf(policy).used(state, policy, nowMs)
    least = Math.min(least, Math.floor(left / unitCost))
  })
  return least
}
