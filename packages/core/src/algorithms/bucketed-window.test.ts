import { describe, expect, it } from "vitest"
import { bucketedWindow } from "./bucketed-window.ts"
import { Counter, expectLedger, policyOf } from "./testing/counter-story.ts"

const NEVER = Number.POSITIVE_INFINITY
/** A policy with 10 units per minute and sub-windows of 10 s. */
const POLICY = policyOf({ algorithm: "sliding-window", limit: 10, windowMs: 60_000, buckets: 6 })

describe("a sliding window with sub-windows", () => {
  it("weights the oldest sub-window by the share that the window still covers", () => {
    expectLedger(POLICY, [
      [5_000, 10, 0, 0],
      [59_999, 1, 2, 0],
      [60_000, 1, 1, 0],
      [60_001, 1, 0, 0],
      [65_000, 1, 0, 3],
      // 5 of the first 10 units count, and both later units count in full. 4 more units fit when only 4 of the first
      // 10 count.
      [65_000, 4, 1, 3],
      [65_001, 4, 0, 0],
      [65_001, 10, 63_333, 0],
      [65_001, 11, NEVER, 0],
      [65_001, 0, 0, 0],
      [70_000, 4, 0, 0],
      [500_000, 10, 0, 0],
    ])
  })

  it("counts the current window and a share of the previous window if it has a single sub-window", () => {
    expectLedger({ ...POLICY, buckets: 1 }, [
      [30_000, 10, 0, 0],
      [84_000, 4, 0, 0],
      [84_000, 1, 1, 0],
      [84_001, 1, 0, 0],
    ])
  })

  it("weights the oldest sub-window in whole seconds under a limit of millions of units a month", () => {
    const dayMs = 86_400_000
    // A sub-window of ten days is weighted in 864,000 whole seconds, so milliseconds make no difference.
    const policy = { ...POLICY, limit: 20_000_000, windowMs: 30 * dayMs, buckets: 3 }
    const counter = new Counter(policy)
    counter.take(0, 20_000_000)
    expect(counter.copy().remaining(30 * dayMs + 1_999)).toBe(Math.ceil(20_000_000 / 864_000))
    expect(counter.waitMs(30 * dayMs, 1)).toBe(1_000)
    expect([999, 1_000].map((ms) => counter.copy().take(30 * dayMs + ms, 1))).toEqual([false, true])
  })

  it("reports a wait of at most one sub-window, even if that is not a whole number of seconds", () => {
    const bucketMs = 30 * 86_400_000 + 1
    const limit = 5_000_017
    const counter = new Counter({ ...POLICY, limit, windowMs: 2 * bucketMs, buckets: 2 })
    counter.take(0, limit)
    expect(counter.waitMs(2 * bucketMs, limit)).toBe(bucketMs)
    expect(counter.copy().take(3 * bucketMs - 1, limit)).toBe(false)
    expect(counter.take(3 * bucketMs, limit)).toBe(true)
  })

  it("returns a finite wait if the stored sum exceeds the sum of the sub-windows", () => {
    const state = { startMs: 60_000, current: 0, previous: 50, parts: "" }
    expect(bucketedWindow.retryAfterMs(state, POLICY, 1, 60_000)).toBe(60_000)
  })
})
