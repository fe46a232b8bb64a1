import type { Algorithm, CounterState } from "../algorithms/algorithm.ts"
import type { Check } from "./store.ts"

/** A check on its way: what its counter holds, and what it has taken. */
export interface Pending {
  readonly check: Check
  readonly algorithm: Algorithm
  state: CounterState
  taken: number
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
    const sibling = pending.findLast((other) => other !== one && other.taken > 0 && isSameCounter(other, one))
    if (sibling !== undefined) one.state = sibling.state
    if (one.algorithm.admits(one.state, policy, cost, nowMs)) {
      one.state = one.algorithm.withUnits(one.state, policy, cost)
      one.taken = cost
    } else if (!shadow) return false
  }
  return true
}
