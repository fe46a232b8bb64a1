import { ceilingOf } from "../ground/policy.ts"
import type { Algorithm } from "./algorithm.ts"
import { withCountedUpTo } from "./exact-counts.ts"

/**
 * The fixed window is a count that restarts at 0 in each window. The fixed window admits a request if C + cost <= L.
 *
 * Worst case in any window of length W: 2L, in a burst around a boundary. Windows start at multiples of W since the
 * epoch, or with the first request (`align: "first-hit"`).
 */
export const fixedWindow: Algorithm = {
  at(state, { align, windowMs }, nowMs) {
    const alignedMs = align === "epoch" ? nowMs - (nowMs % windowMs) : nowMs
    // A window that starts with the first request has not started yet if it has no units.
    if (state === undefined || state.current === 0 || nowMs - state.startMs >= windowMs) {
      return { startMs: alignedMs, current: 0, previous: 0 }
    }
    // The clock went back. The units stay in their window, or move to the next window if their window is later. If
    // they moved to the current window, they would expire at its end, perhaps in a millisecond. The window in which
    // they were taken would then admit the full limit again.
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
      // A take of 0 units did not start a window, so a charge for it starts a window at the time of that take. If
      // another window has started since, the charge counts in that window.
      const startMs = state.current === 0 ? Math.min(after.startMs, nowMs) : state.startMs
      return { startMs, current: state.current - units, previous: 0 }
    }
    if (after.startMs !== state.startMs) return state
    return { ...state, current: Math.max(0, state.current - units) }
  },
}
