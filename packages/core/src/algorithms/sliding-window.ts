import type { Policy } from "../policy.ts"
import type { Algorithm } from "./algorithm.ts"

/**
 * A window of at most so many units of time has a square below 2^53, so a share of any count is exact. In
 * milliseconds that is 26 hours, in seconds three years.
 */
const WIDEST_WINDOW = 94_000_000

/**
 * The sliding window counter: the previous window's count P weighted by how much of it the sliding window still
 * covers, plus the present window's count C. With L the limit, W the window and e the time into it, a cost is
 * admitted when floor(P * (W - e) / W) + C + cost <= L.
 *
 * Worst case in any window of length W: 2L, and L + 1 in a burst across a boundary; in a window aligned to the epoch
 * never more than L. All arithmetic is in integers below 2^53: the comparison is made multiplied by W. Where the limit
 * times the window in milliseconds would pass that, time is counted in whole seconds.
 */
export const slidingWindow: Algorithm = {
  at(state, policy, nowMs) {
    const startMs = nowMs - (nowMs % policy.windowMs)
    if (state === undefined) return { previous: 0, current: 0, startMs }
    if (state.startMs === startMs) return state
    if (state.startMs > startMs) {
      // The clock went back.
      const current = Math.min(state.previous + state.current, Number.MAX_SAFE_INTEGER)
      return { previous: 0, current, startMs }
    }
    const previous = startMs - state.startMs === policy.windowMs ? state.current : 0
    return { previous, current: 0, startMs }
  },

  admits({ previous, current, startMs }, policy, cost, nowMs) {
    if (cost === 0) return true
    const room = policy.limit - current - cost
    if (room < 0) return false
    if (previous === 0) return true
    return nowMs - startMs >= firstOffsetBelow(previous, room + 1, policy)
  },

  remaining({ previous, current, startMs }, policy, nowMs) {
    return Math.max(0, policy.limit - weighted(previous, nowMs - startMs, policy) - current)
  },

  retryAfterMs(state, policy, cost, nowMs) {
    const { limit, windowMs } = policy
    if (cost === 0) return 0
    if (cost > limit) return Number.POSITIVE_INFINITY
    const elapsed = nowMs - state.startMs
    if (state.current + cost <= limit) {
      const opens = firstOffsetBelow(state.previous, limit - state.current - cost + 1, policy)
      return Math.max(0, Math.min(opens, windowMs) - elapsed)
    }
    return windowMs - elapsed + Math.min(firstOffsetBelow(state.current, limit - cost + 1, policy), windowMs)
  },

  resetAfterMs({ previous, current, startMs }, policy, nowMs) {
    const elapsed = nowMs - startMs
    if (current > 0)
      return policy.windowMs - elapsed + Math.min(firstOffsetBelow(current, 1, policy), policy.windowMs)
    return Math.max(0, Math.min(firstOffsetBelow(previous, 1, policy), policy.windowMs) - elapsed)
  },

  emptyAtMs({ previous, current, startMs }, policy) {
    if (current > 0) return startMs + 2 * policy.windowMs
    return previous > 0 ? startMs + policy.windowMs : startMs
  },

  withUnits({ previous, current, startMs }, _policy, units) {
    return { previous, current: current + units, startMs }
  },

  withoutUnits(state, policy, units, takenInMs) {
    const { previous, current, startMs } = state
    if (takenInMs === startMs) return { previous, current: Math.max(0, current - units), startMs }
    if (takenInMs === startMs - policy.windowMs)
      return { previous: Math.max(0, previous - units), current, startMs }
    return state
  },
}

/** floor(P * (W - e) / W), in the unit of time that `timeUnitMs` chooses. */
function weighted(previous: number, elapsedMs: number, policy: Policy): number {
  if (previous === 0) return 0
  const unitMs = timeUnitMs(previous, policy)
  const window = Math.ceil(policy.windowMs / unitMs)
  return share(previous, window - Math.floor(elapsedMs / unitMs), window)
}

/**
 * The first offset x into the window, in milliseconds, at which P * (W - x) < K * W: from there on the weighted
 * previous count is below K. 0 when it is so from the start; W at the latest, for K of at least 1.
 */
function firstOffsetBelow(previous: number, count: number, policy: Policy): number {
  if (previous < count) return 0
  const unitMs = timeUnitMs(previous, policy)
  const window = Math.ceil(policy.windowMs / unitMs)
  const product = (previous - count) * window
  const offset = Math.floor(product / previous)
  if (product <= Number.MAX_SAFE_INTEGER) return (offset + 1) * unitMs
  // The product was rounded, so the quotient may be one too many: count up from there.
  let exact = offset
  while (share(previous, window - exact, window) >= count) exact++
  return exact * unitMs
}

/** Milliseconds, where a count times the window stays below 2^53; else whole seconds, one or as many as it takes. */
function timeUnitMs(previous: number, { limit, windowMs }: Policy): number {
  if (Math.max(previous, limit) * windowMs <= Number.MAX_SAFE_INTEGER) return 1
  return 1000 * Math.ceil(windowMs / 1000 / WIDEST_WINDOW)
}

/** floor(count * part / whole), exactly, for any count below 2^53 and part <= whole <= WIDEST_WINDOW. */
function share(count: number, part: number, whole: number): number {
  const product = count * part
  if (product <= Number.MAX_SAFE_INTEGER) return Math.floor(product / whole)
  return Math.floor(count / whole) * part + Math.floor(((count % whole) * part) / whole)
}
