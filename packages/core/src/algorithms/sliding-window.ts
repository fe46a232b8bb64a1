import { ceilingOf } from "../ground/policy.ts"
import type { Algorithm } from "./algorithm.ts"
import { firstOffsetBelow, weighted, withCountedUpTo } from "./exact-counts.ts"

/**
 * The sliding window counter. This algorithm adds the current window's count C to the previous window's count P,
 * weighted by the share that the sliding window still covers. L is the ceiling, W the window and e the time since its
 * start. A cost is admitted if floor(P * (W - e) / W) + C + cost <= L.
 *
 * Worst case in any window of length W: 2L, and L + 1 in a burst across a boundary. A window aligned to the epoch
 * admits at most L. All arithmetic is in integers below 2^53, because both sides of the comparison are multiplied by W.
 * If the limit times the window in milliseconds exceeds 2^53, time is counted in whole seconds.
 */
export const slidingWindow: Algorithm = {
  at(state, policy, nowMs) {
    // Return early, because nearly every state is from the current window and the remainder operation below is
    // expensive.
    if (state !== undefined && nowMs >= state.startMs && nowMs - state.startMs < policy.windowMs) return state
    const startMs = nowMs - (nowMs % policy.windowMs)
    if (state === undefined) return { startMs, current: 0, previous: 0 }
    if (state.startMs > startMs) {
      // The clock went back.
      const current = Math.min(state.previous + state.current, Number.MAX_SAFE_INTEGER)
      return { startMs, current, previous: 0 }
    }
    const previous = startMs - state.startMs === policy.windowMs ? state.current : 0
    return { startMs, current: 0, previous }
  },

  admits({ previous, current, startMs }, policy, cost, nowMs) {
    if (cost === 0) return true
    const room = ceilingOf(policy) - current - cost
    if (room < 0) return false
    if (previous === 0) return true
    return nowMs - startMs >= firstOffsetBelow(previous, room + 1, policy.windowMs, ceilingOf(policy))
  },

  used({ previous, current, startMs }, policy, nowMs) {
    if (previous === 0) return current
    return weighted(previous, nowMs - startMs, policy.windowMs, ceilingOf(policy)) + current
  },

  retryAfterMs(state, policy, cost, nowMs) {
    const { windowMs } = policy
    const ceiling = ceilingOf(policy)
    if (cost === 0) return 0
    if (cost > ceiling) return Number.POSITIVE_INFINITY
    const elapsed = nowMs - state.startMs
    if (state.current + cost <= ceiling) {
      const room = ceiling - state.current - cost
      const opensMs = firstOffsetBelow(state.previous, room + 1, windowMs, ceiling)
      return Math.max(0, Math.min(opensMs, windowMs) - elapsed)
    }
    const opensMs = firstOffsetBelow(state.current, ceiling - cost + 1, windowMs, ceiling)
    return windowMs - elapsed + Math.min(opensMs, windowMs)
  },

  resetAfterMs({ previous, current, startMs }, policy, nowMs) {
    const { windowMs } = policy
    const elapsed = nowMs - startMs
    const count = current > 0 ? current : previous
    const goneMs = Math.min(firstOffsetBelow(count, 1, windowMs, ceilingOf(policy)), windowMs)
    return current > 0 ? windowMs - elapsed + goneMs : Math.max(0, goneMs - elapsed)
  },

  emptyAtMs({ previous, current, startMs }, policy) {
    if (current > 0) return startMs + 2 * policy.windowMs
    return previous > 0 ? startMs + policy.windowMs : startMs
  },

  withUnits({ previous, current, startMs }, _policy, units) {
    return { startMs, current: current + units, previous }
  },

  withRejected(state, policy, units) {
    return withCountedUpTo(ceilingOf(policy), state, units)
  },

  withoutUnits(state, policy, units, after) {
    const { previous, current, startMs } = state
    if (after.startMs === startMs) return { startMs, current: Math.max(0, current - units), previous }
    if (after.startMs === startMs - policy.windowMs)
      return { startMs, current, previous: Math.max(0, previous - units) }
    return state
  },
}
