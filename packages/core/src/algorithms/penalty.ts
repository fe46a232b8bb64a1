import type { Penalty, Policy } from "../ground/policy.ts"
import type { Algorithm, CounterState } from "./algorithm.ts"

/**
 * The penalty: blocks a client that is refused repeatedly. It counts a rule's refusals and forgets them `withinMs`
 * after the first. When the count reaches `limit`, a block begins, which admits nothing for `forMs`. Refusals during a
 * block do not extend it. With a limit of 0, refusals never block. An admission does not change the state: stores count
 * refusals by `withRejected` only.
 *
 * An operator blocks a client by charging the counter. Each unit is a millisecond of a block that starts now, unless a
 * longer block is in force. The state of such a block has 0 refusals and stores the length of the block.
 */
export const penalty: Algorithm = {
  at(state, policy, nowMs) {
    if (state === undefined || isEmpty(state) || nowMs - state.startMs >= lastsMs(state, policy)) {
      return { startMs: nowMs, current: 0, previous: 0 }
    }
    // The clock went back. Move a start in the future to now, so that a block does not last longer than the rule says.
    return state.startMs > nowMs ? { ...state, startMs: nowMs } : state
  },

  admits(state, _policy, cost) {
    return cost === 0 || !isBlocked(state)
  },

  used(state, { limit }) {
    return isBlocked(state) ? limit : 0
  },

  retryAfterMs(state, policy, cost, nowMs) {
    return cost === 0 || !isBlocked(state) ? 0 : state.startMs + lastsMs(state, policy) - nowMs
  },

  resetAfterMs(state, policy, nowMs) {
    return isBlocked(state) ? state.startMs + lastsMs(state, policy) - nowMs : 0
  },

  endsByRule: true,

  emptyAtMs(state, policy) {
    return isEmpty(state) ? state.startMs : state.startMs + lastsMs(state, policy)
  },

  withUnits(state) {
    return state
  },

  withRejected(state, { limit }, _units, nowMs) {
    if (limit === 0 || isBlocked(state)) return state
    const current = state.current + 1
    if (current >= limit) return { startMs: nowMs, current, previous: 1 }
    return { ...state, current }
  },

  withoutUnits(state, policy, units, _after, nowMs) {
    const restMs = isBlocked(state) ? state.startMs + lastsMs(state, policy) - nowMs : 0
    return -units > restMs ? { startMs: nowMs, current: 0, previous: -units } : state
  },
}

function isEmpty({ current, previous }: CounterState): boolean {
  return current === 0 && previous === 0
}

/** Whether an operator set the block. Such a state has 0 refusals, and `previous` is the length of the block. */
export function isBlockedByHand({ current, previous }: CounterState): boolean {
  return current === 0 && previous > 0
}

function isBlocked({ previous }: CounterState): boolean {
  return previous > 0
}

/** Returns how long the state lasts from its start, in milliseconds. */
function lastsMs(state: CounterState, policy: Policy): number {
  if (isBlockedByHand(state)) return state.previous
  const { withinMs, forMs } = policy.penalty as Penalty
  return isBlocked(state) ? forMs : withinMs
}
