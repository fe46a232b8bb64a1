import { ceilingOf } from "../ground/policy.ts"
import type { Algorithm } from "./algorithm.ts"
import {
  bucketMsOf,
  bucketsOf,
  oldestAfter,
  subWindowsAt,
  subWindowsEndAtMs,
  subWindowsWithRejected,
  withoutUnitsOf,
} from "./sub-windows.ts"

/**
 * The strict sliding window. This algorithm counts the current sub-window and the n sub-windows before it in full.
 * Together they cover at least the window that ends now, so one counter admits at most L in any window of length W.
 * In exchange, units expire up to one sub-window late.
 */
export const strictWindow: Algorithm = {
  hasParts: true,

  at: subWindowsAt,

  admits({ current, previous }, policy, cost) {
    return cost === 0 || current + previous + cost <= ceilingOf(policy)
  },

  used({ current, previous }) {
    return current + previous
  },

  retryAfterMs(state, policy, cost, nowMs) {
    if (cost === 0) return 0
    const ceiling = ceilingOf(policy)
    if (cost > ceiling) return Number.POSITIVE_INFINITY
    let used = state.current + state.previous
    let by = 0
    for (; used + cost > ceiling && by <= bucketsOf(policy); by++) used -= oldestAfter(state, policy, by)
    return by === 0 ? 0 : state.startMs + by * bucketMsOf(policy) - nowMs
  },

  resetAfterMs(state, policy, nowMs) {
    return Math.max(0, subWindowsEndAtMs(state, policy) - nowMs)
  },

  emptyAtMs: subWindowsEndAtMs,

  withUnits(state, _policy, units) {
    return { ...state, current: state.current + units }
  },

  withRejected: subWindowsWithRejected,

  withoutUnits(state, policy, units, after) {
    return withoutUnitsOf(state, policy, units, after.startMs)
  },
}
