import { ceilingOf, type Policy } from "../ground/policy.ts"
import type { Algorithm, CounterState } from "./algorithm.ts"
import { fixedWindow } from "./fixed-window.ts"
import { mostInUse, owesTooMuch } from "./most-in-use.ts"

/**
 * The token bucket that is refilled with L tokens in one step at the start of each window, at multiples of W since
 * the epoch. Missed refills are added later, but only as many tokens as fit into the bucket. `current` is the number
 * of missing tokens.
 */
export const periodicRefill: Algorithm = {
  // Count the missing tokens as a fixed window counts units.
  ...fixedWindow,

  at(stored, policy, nowMs) {
    const startMs = nowMs - (nowMs % policy.windowMs)
    if (stored === undefined) return { startMs, current: 0, previous: 0 }
    const state = owesTooMuch(stored.current, policy) ? { ...stored, current: ceilingOf(policy) } : stored
    if (state.startMs > startMs) {
      // The clock went back. The next refill happens at its original time, but no later than two windows from
      // `startMs`.
      return { ...state, startMs: Math.min(state.startMs, startMs + policy.windowMs) }
    }
    if (state.startMs === startMs) return state
    return { startMs, current: Math.max(0, state.current - refilled(state, policy, startMs)), previous: 0 }
  },

  retryAfterMs(state, policy, cost, nowMs) {
    const ceiling = ceilingOf(policy)
    if (cost === 0 || state.current + cost <= ceiling) return 0
    if (cost > ceiling) return Number.POSITIVE_INFINITY
    return refilledAtMs(state, policy, state.current + cost - ceiling) - nowMs
  },

  resetAfterMs(state, policy, nowMs) {
    return state.current === 0 ? 0 : refilledAtMs(state, policy, state.current) - nowMs
  },

  endsByRule: true,

  emptyAtMs(state, policy) {
    if (state.current === 0) return state.startMs
    // With a limit of 0, tokens are never refilled. Keep the state for a window in case the limit is raised again.
    if (policy.limit === 0) return state.startMs + policy.windowMs
    return refilledAtMs(state, policy, state.current)
  },

  filled(state, policy) {
    return { ...state, current: Math.max(state.current, ceilingOf(policy)) }
  },

  withoutUnits(state, policy, units, after) {
    // The tokens that were taken last are refilled last, as in bucket.ts.
    const left = after.current - refilled(after, policy, state.startMs)
    const tokens = Math.max(0, left) - Math.max(0, left - units)
    if (tokens === 0) return state
    return { ...state, current: Math.min(mostInUse(policy), Math.max(0, state.current - tokens)) }
  },
}

function refilled({ startMs }: CounterState, { limit, windowMs }: Policy, untilMs: number): number {
  return Math.max(0, Math.floor((untilMs - startMs) / windowMs)) * limit
}

/** Returns the epoch milliseconds at which `tokens` tokens have been refilled, or Infinity if the limit is 0. */
function refilledAtMs({ startMs }: CounterState, { limit, windowMs }: Policy, tokens: number): number {
  return startMs + Math.ceil(tokens / limit) * windowMs
}
