import { algorithmOf } from "../algorithms/kinds.ts"
import type { MaybePromise } from "../ground/maybe-promise.ts"
import { ceilingOf } from "../ground/policy.ts"
import type { StoreResult } from "../stores/store.ts"
import type { Decision } from "./decision.ts"
import { DecisionRecord } from "./decision-record.ts"
import { type OnStoreAnswer, type RuleCheck, ruleChecksUpTo } from "./rule-check.ts"

/** Takes the units of every rule check, or refuses and takes none. */
type Take = (ruleChecks: readonly RuleCheck[], onAnswer: OnStoreAnswer) => MaybePromise<Decision>

/** Who is asked: `Decider`. */
export interface Taking {
  readonly take: Take
  /** The same, without counting a refusal where refusals count. */
  readonly takeIfItFits: Take
}

/** Others may take what was left between two tries. Who loses to them so often asks for a single unit, and that is all. */
const MOST_TRIES = 4

/**
 * As many units as there are, `units` at most: each rule counts them times its own cost. `asks` are those of one unit.
 *
 * All are asked for first. A refusal tells what each rule has left, and so many are asked for next: what is granted is
 * taken under all rules in one call of the store, or not at all. Where refusals count, only that of a single unit does.
 */
export async function takeUpTo(
  taking: Taking,
  ruleChecks: readonly RuleCheck[],
  units: number,
): Promise<Decision> {
  let wanted = Math.min(units, mostEver(ruleChecks))
  for (let tries = 1; ; tries++) {
    let left = 0
    const onAnswer: OnStoreAnswer = (storeChecks, answer) => {
      left = unitsLeft(storeChecks, answer)
    }
    const some = ruleChecksUpTo(ruleChecks, wanted)
    const decision = await (wanted > 1 ? taking.takeIfItFits(some, onAnswer) : taking.take(some, onAnswer))
    if (decision.allowed) return DecisionRecord.telling(decision, wanted)
    if (wanted === 1 || !isTooMuch(decision)) return decision
    wanted = tries < MOST_TRIES ? Math.max(1, Math.min(left, wanted)) : 1
  }
}

/** Whether fewer units may be granted. More than there ever are is asked for of an instance's part, in an outage. */
function isTooMuch({ refusal }: Decision): boolean {
  return refusal === "quota" || refusal === "cost"
}

/** Units that are granted when nothing has been taken; one at least, so that it is the rule that refuses it. */
function mostEver(ruleChecks: readonly RuleCheck[]): number {
  let most = Number.POSITIVE_INFINITY
  for (const { policy, unitCost, shadow } of ruleChecks) {
    if (!shadow) most = Math.min(most, Math.floor(ceilingOf(policy) / unitCost))
  }
  return Math.max(1, most)
}

/** Units that every rule had left, those above the limit included. */
function unitsLeft(storeChecks: readonly RuleCheck[], { nowMs, checks }: StoreResult): number {
  let least = Number.POSITIVE_INFINITY
  storeChecks.forEach(({ policy, unitCost, shadow }, i) => {
    const state = checks[i]?.state
    if (shadow || state === undefined) return
    const left = ceilingOf(policy) - algorithmOf(policy).used(state, policy, nowMs)
    least = Math.min(least, Math.floor(left / unitCost))
  })
  return least
}
