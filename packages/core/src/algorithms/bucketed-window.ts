import { ceilingOf } from "../ground/policy.ts"
import type { Algorithm } from "./algorithm.ts"
import { firstOffsetBelow, weighted } from "./exact-counts.ts"
import { strictWindow } from "./strict-window.ts"
import { bucketMsOf, bucketsOf, oldestAfter, subWindowsEndAtMs } from "./sub-windows.ts"

/**
 * The sliding window counter with n sub-windows instead of two windows. The oldest of the n sub-windows before the
 * current sub-window is weighted by the share that the sliding window still covers. All later sub-windows count in
 * full.
 *
 * Worst case: 2L in any window of length W, and L in any window of length W * (1 - 1/n).
 */
export const bucketedWindow: Algorithm = {
  // Count and expire units in the same sub-windows as the strict window.
  ...strictWindow,

  admits(state, policy, cost, nowMs) {
    return cost === 0 || this.used(state, policy, nowMs) + cost <= ceilingOf(policy)
  },

  used(state, policy, nowMs) {
    const oldest = oldestAfter(state, policy, 0)
    const covered = weighted(oldest, nowMs - state.startMs, bucketMsOf(policy), ceilingOf(policy))
    return state.current + state.previous - oldest + covered
  },

  retryAfterMs(state, policy, cost, nowMs) {
    if (cost === 0) return 0
    const ceiling = ceilingOf(policy)
    if (cost > ceiling) return Number.POSITIVE_INFINITY
    const bucketMs = bucketMsOf(policy)
    const elapsedMs = nowMs - state.startMs
    let newer = state.current + state.previous
    // With each sub-window that passes, the next sub-window becomes the oldest, and finally the current sub-window
    // does.
    for (let by = 0; ; by++) {
      const oldest = oldestAfter(state, policy, by)
      newer = by === bucketsOf(policy) ? 0 : newer - oldest
      if (newer + cost > ceiling) continue
      const opens = Math.min(
        firstOffsetBelow(oldest, ceiling - newer - cost + 1, bucketMs, ceiling),
        bucketMs,
      )
      return Math.max(0, by * bucketMs + opens - elapsedMs)
    }
  },

  resetAfterMs(state, policy, nowMs) {
    const bucketMs = bucketMsOf(policy)
    // Find the latest sub-window that contains units. When this sub-window has become the oldest, it counts until its
    // share is less than a unit. Without any units, `count` is 0.
    const last = subWindowsEndAtMs(state, policy) - bucketMs
    const count = oldestAfter(state, policy, (last - state.startMs) / bucketMs)
    const opens = Math.min(firstOffsetBelow(count, 1, bucketMs, ceilingOf(policy)), bucketMs)
    return Math.max(0, last + opens - nowMs)
  },
}
