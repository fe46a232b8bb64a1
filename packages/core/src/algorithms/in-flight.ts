import { ceilingOf } from "../ground/policy.ts"
import type { Algorithm } from "./algorithm.ts"
import { slidingWindow } from "./sliding-window.ts"

/**
 * The wait, in milliseconds, of a request that found no permit. The real wait depends on when other requests end, so
 * this number is a hint.
 */
export const PERMIT_RETRY_MS = 1_000

/**
 * Counts the permits of requests that are in progress. The counter has two windows, which both count in full. A permit
 * is counted in the window in which it was taken or last renewed. So it ends by itself between one and two windows
 * later, if nobody renews or releases it.
 *
 * A release is a refund from the window of the last renewal. A renewal is a refund of negative units: it moves units
 * from their window to the current one, and adds those that are missing there, even above the limit. After a loss of
 * counts, the count is then true again, because the requests of these permits are still in progress.
 *
 * Worst case: a request is admitted only while the permits held by all others and its own are at most the limit. This
 * holds as long as each holder renews its permits before their windows end.
 */
export const inFlight: Algorithm = {
  at(state, policy, nowMs) {
    if (state === undefined || state.startMs <= nowMs) return slidingWindow.at(state, policy, nowMs)
    // The clock went back. If the window is the next one, keep it, because the clock soon reaches it. In an earlier
    // window, the permits would end before their holders renew them.
    const nextMs = nowMs - (nowMs % policy.windowMs) + policy.windowMs
    if (state.startMs <= nextMs) return state
    const current = Math.min(state.previous + state.current, Number.MAX_SAFE_INTEGER)
    return { startMs: nextMs, current, previous: 0 }
  },

  admits({ previous, current }, policy, cost) {
    return cost === 0 || previous + current + cost <= ceilingOf(policy)
  },

  used({ previous, current }) {
    return previous + current
  },

  retryAfterMs(state, policy, cost, nowMs) {
    if (inFlight.admits(state, policy, cost, nowMs)) return 0
    return cost > ceilingOf(policy) ? Number.POSITIVE_INFINITY : PERMIT_RETRY_MS
  },

  resetAfterMs(state, policy, nowMs) {
    return Math.max(0, inFlight.emptyAtMs(state, policy) - nowMs)
  },

  emptyAtMs: slidingWindow.emptyAtMs,

  withUnits: slidingWindow.withUnits,

  withRejected(state) {
    return state
  },

  withoutUnits(state, { windowMs }, units, after) {
    let { startMs, current, previous } = state
    const moved = Math.abs(units)
    // A later start means that the clock went back. All permits were then moved to the counter's latest window.
    if (after.startMs >= startMs) current = Math.max(0, current - moved)
    else if (after.startMs === startMs - windowMs) previous = Math.max(0, previous - moved)
    else if (units >= 0) return state
    if (units < 0) current += moved
    return { startMs, current, previous }
  },
}
