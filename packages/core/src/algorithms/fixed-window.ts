import type { Algorithm } from "./algorithm.ts"

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
      return { previous: 0, current: 0, startMs: alignedMs }
    }
    // The clock went back. Counted in the present window, the units would be gone at its end, perhaps a millisecond
    // away, and the window they were taken in would be open a second time: they stay there, or in the next one.
    if (state.startMs > nowMs) return { ...state, startMs: Math.min(state.startMs, alignedMs + windowMs) }
    return state
  },

  admits({ current }, { limit }, cost) {
    return cost === 0 || current + cost <= limit
  },

  remaining({ current }, { limit }) {
    return Math.max(0, limit - current)
  },

  retryAfterMs({ current, startMs }, { limit, windowMs }, cost, nowMs) {
    if (cost > limit) return Number.POSITIVE_INFINITY
    return cost === 0 || current + cost <= limit ? 0 : startMs + windowMs - nowMs
  },

  resetAfterMs({ current, startMs }, { windowMs }, nowMs) {
    return current === 0 ? 0 : startMs + windowMs - nowMs
  },

  emptyAtMs({ current, startMs }, { windowMs }) {
    return current === 0 ? startMs : startMs + windowMs
  },

  withUnits({ previous, current, startMs }, _policy, units) {
    return { previous, current: current + units, startMs }
  },

  withoutUnits(state, _policy, units, takenInMs) {
    if (takenInMs !== state.startMs) return state
    return { ...state, current: Math.max(0, state.current - units) }
  },
}
