import type { Penalty, Policy } from "../ground/policy.ts"
import type { Algorithm, CounterState } from "./algorithm.ts"

/**
 * Blocks a client that is refused again and again: it counts a rule's refusals from the first of them, and forgets them after
 * `withinMs`. The refusal that makes it `limit` begins a block, which admits nothing for `forMs`; refusals meanwhile do not
 * prolong it. With a limit of 0, refusals never block. Admitting takes nothing: a store counts refusals by `withRejected` alone.
 *
 * An operator blocks a client by charging the counter: each unit is a millisecond of a block from now on, unless a longer one
 * is in force. Such a block has no refusals, and its length is in the state.
 */
export const penalty: Algorithm = {
  at(state, policy, nowMs) {
    if (state === undefined || isEmpty(state) || nowMs - state.startMs >= lastsMs(state, policy)) {
      return { startMs: nowMs, current: 0, previous: 0 }
    }
    // The clock went back: what is ahead of it began now, so nobody is blocked for longer than the rule says.
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

/** Whether an operator began the block: it has no refusals, and its length is `previous`. */
export function isBlockedByHand({ current, previous }: CounterState): boolean {
  return current === 0 && previous > 0
}

function isBlocked({ previous }: CounterState): boolean {
  return previous > 0
}

/** How long a state lasts from its start. */
function lastsMs(state: CounterState, policy: Policy): number {
  if (isBlockedByHand(state)) return state.previous
  const { withinMs, forMs } = policy.penalty as Penalty
  return isBlocked(state) ? forMs : withinMs
}
