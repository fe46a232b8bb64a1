import { ceilingOf } from "../ground/policy.ts"
import type { Algorithm } from "./algorithm.ts"
import { withCountedUpTo } from "./exact-counts.ts"

/**
 * The fixed window: a count that starts anew with each window. Admits when C + cost <= L.
 *
 * Worst case in any window of length W: 2L, in a burst around a boundary. Windows start at multiples of W since the
 * epoch, or with the first request (`align: "first-hit"`).
 */
export const fixedWindow: Algorithm = {
  at(state, { align, windowMs }, nowMs) {
    const alignedMs = align === "epoch" ? nowMs - (nowMs % windowMs) : nowMs
    // A window that nobody has taken from has not started yet.
    if (state === undefined || state.current === 0 || nowMs - state.startMs >= windowMs) {
      return { startMs: alignedMs, current: 0, previous: 0 }
    }
    // The clock went back. Counted in the present window, the units would be gone at its end, perhaps a millisecond
    // away, and the window they were taken in would be open a second time: they stay there, or in the next one.
    if (state.startMs > nowMs) return { ...state, startMs: Math.min(state.startMs, alignedMs + windowMs) }
    return state
  },

  admits({ current }, policy, cost) {
    return cost === 0 || current + cost <= ceilingOf(policy)
  },

  used({ current }) {
    return current
  },

  retryAfterMs({ current, startMs }, policy, cost, nowMs) {
    const ceiling = ceilingOf(policy)
    if (cost > ceiling) return Number.POSITIVE_INFINITY
    return cost === 0 || current + cost <= ceiling ? 0 : startMs + policy.windowMs - nowMs
  },

  resetAfterMs({ current, startMs }, { windowMs }, nowMs) {
    return current === 0 ? 0 : startMs + windowMs - nowMs
  },

  emptyAtMs({ current, startMs }, { windowMs }) {
    return current === 0 ? startMs : startMs + windowMs
  },

  withUnits({ startMs, current }, _policy, units) {
    return { startMs, current: current + units, previous: 0 }
  },

  withRejected(state, policy, units) {
    return withCountedUpTo(ceilingOf(policy), state, units)
  },

  withoutUnits(state, { align, windowMs }, units, after, nowMs) {
    if (align === "first-hit" && units < 0 && nowMs - after.startMs < windowMs) {
      // Who took no units started no window: what is charged for it starts one at that time, unless one has begun since.
      const startMs = state.current === 0 ? Math.min(after.startMs, nowMs) : state.startMs
      return { startMs, current: state.current - units, previous: 0 }
    }
    if (after.startMs !== state.startMs) return state
    return { ...state, current: Math.max(0, state.current - units) }
  },
}
