import { describe, expect, it } from "vitest"
import { strictWindow } from "./strict-window.ts"
import { expectLedger, policyOf } from "./testing/counter-story.ts"

const NEVER = Number.POSITIVE_INFINITY
/** A policy with 10 units per minute and sub-windows of 10 s. */
const POLICY = policyOf({ algorithm: "sliding-window-strict", limit: 10, windowMs: 60_000, buckets: 6 })

describe("the strict sliding window", () => {
  it("expires units a whole window after the end of their sub-window, so up to one sub-window late", () => {
    expectLedger(POLICY, [
      [5_000, 4, 0, 6],
      [15_000, 6, 0, 0],
      [59_999, 1, 10_001, 0],
      // An exact log would already admit at 65,001.
      [65_001, 1, 4_999, 0],
      [69_999, 1, 1, 0],
      [70_000, 4, 0, 0],
      [70_000, 5, 10_000, 0],
      [79_999, 1, 1, 0],
      [80_000, 6, 0, 0],
      [80_000, 11, NEVER, 0],
      [80_000, 0, 0, 0],
      // The 4 units that were taken at 70,000 expire 60 s and a sub-window later.
      [139_999, 1, 1, 0],
      [140_000, 5, 10_000, 4],
      [140_000, 4, 0, 0],
      [500_000, 10, 0, 0],
    ])
  })

  it("uses one sub-window for a window of 1 ms, even if more sub-windows are configured", () => {
    expectLedger({ ...POLICY, limit: 2, windowMs: 1, buckets: 60 }, [
      [100, 2, 0, 0],
      [100, 1, 2, 0],
      [101, 1, 1, 0],
      [102, 2, 0, 0],
    ])
  })

  it("does not double the wait if 60 sub-windows are configured for a window of 61 ms", () => {
    expectLedger({ ...POLICY, limit: 1, windowMs: 61, buckets: 60 }, [
      [1_000, 1, 0, 0],
      [1_001, 1, 63, 0],
      [1_063, 1, 1, 0],
      [1_064, 1, 0, 0],
    ])
  })

  it("returns a finite wait if the stored sum exceeds the sum of the sub-windows", () => {
    const state = { startMs: 60_000, current: 0, previous: 50, parts: "" }
    expect(strictWindow.retryAfterMs(state, POLICY, 1, 60_000)).toBe(70_000)
  })
})
