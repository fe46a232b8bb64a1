import type { Penalty, Policy } from "../policy.ts"
import type { Algorithm, CounterState } from "./algorithm.ts"

/**
 * What blocks a client that is refused again and again: a count of a rule's refusals that starts with the first of them
 * and is forgotten after `withinMs`. The refusal that makes it `limit` begins a block, which admits nothing for `forMs`;
 * refusals meanwhile do not prolong it. Admitting takes nothing, and nothing is ever given back: a store counts refusals
 * by `withRejected` alone.
 */
export const penalty: Algorithm = {
  at(state, policy, nowMs) {
    if (state === undefined || state.current === 0 || nowMs - state.startMs >= lastsMs(state, policy)) {
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
    return state.current === 0 ? state.startMs : state.startMs + lastsMs(state, policy)
  },

  withUnits(state) {
    return state
  },

  withRejected(state, { limit }, _units, nowMs) {
    if (isBlocked(state)) return state
    const current = state.current + 1
    if (current >= limit) return { startMs: nowMs, current, previous: 1 }
    return { ...state, current }
  },

  withoutUnits(state) {
    return state
  },
}

function isBlocked({ previous }: CounterState): boolean {
  return previous > 0
}

/** How long a state lasts from its start. */
function lastsMs(state: CounterState, policy: Policy): number {
  const { withinMs, forMs } = policy.penalty as Penalty
  return isBlocked(state) ? forMs : withinMs
}
