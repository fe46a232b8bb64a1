import type { Algorithm, CounterState } from "../algorithms/algorithm.ts"
import { ceilingOf, countsRefusals } from "../ground/policy.ts"
import type { Check } from "./store.ts"

/** A check on its way: what its counter holds, and what it has taken. */
export interface Pending {
  readonly check: Check
  readonly algorithm: Algorithm
  state: CounterState
  taken: number
}

/**
 * What the counters of a refused request hold when refusals that count have been counted, from what they held before it.
 * Counted is each check that would have been refused by itself: under a policy with `countRejected` its units, and in a
 * penalty, which comes right after the check of the rule that it is for, the refusal. Not those of shadow checks, nor of
 * a cost that never fits. A counter has one state, whichever of its checks asks for it.
 */
export function statesAfterRefusal<Each extends Pending>(
  pending: readonly Each[],
  before: readonly CounterState[],
  nowMs: number,
  isSameCounter: (one: Each, other: Each) => boolean,
): readonly CounterState[] {
  const states = [...before]
  pending.forEach((one, i) => {
    const { policy, cost } = one.check
    if (!countsRefusals(one.check)) return
    const place = policy.algorithm === "penalty" ? i - 1 : i
    const refused = pending[place]
    if (refused === undefined || !isRefused(refused, before[place] as CounterState, nowMs)) return
    const state = one.algorithm.withRejected(states[i] as CounterState, policy, cost, nowMs)
    // What has not changed stays what each check's own limit makes of it.
    if (state === states[i]) return
    pending.forEach((other, j) => {
      if (isSameCounter(other, one)) states[j] = state
    })
  })
  return states
}

/** Whether a check is refused by itself, for now: not for ever, since that says nothing of how much somebody asks. */
function isRefused({ check, algorithm }: Pending, state: CounterState, nowMs: number): boolean {
  const { policy, cost, shadow } = check
  return !shadow && cost <= ceilingOf(policy) && !algorithm.admits(state, policy, cost, nowMs)
}

/**
 * Takes the units of every check, in their `state` and `taken`, and tells whether all that are not shadow ones were
 * admitted. Checks of one counter see each other's units. The states are of no use when the answer is no.
 */
export function takeTogether<Each extends Pending>(
  pending: readonly Each[],
  nowMs: number,
  isSameCounter: (one: Each, other: Each) => boolean,
): boolean {
  for (const one of pending) {
    const { policy, cost, shadow } = one.check
    const sibling = pending.findLast((other) => other.taken > 0 && isSameCounter(other, one))
    if (sibling !== undefined) one.state = sibling.state
    if (one.algorithm.admits(one.state, policy, cost, nowMs)) {
      one.state = one.algorithm.withUnits(one.state, policy, cost, nowMs)
      one.taken = cost
    } else if (!shadow) return false
  }
  return true
}
