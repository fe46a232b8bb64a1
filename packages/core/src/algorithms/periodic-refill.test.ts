import { describe, expect, it } from "vitest"
import { algorithmOf } from "./kinds.ts"
import { Counter, expectLedger, policyOf } from "./testing/counter-story.ts"

const NEVER = Number.POSITIVE_INFINITY
/** A policy with two tokens at the start of each minute, and at most three tokens. */
const POLICY = policyOf({
  algorithm: "token-bucket",
  limit: 2,
  windowMs: 60_000,
  burst: 3,
  refill: "periodic",
})

describe("the token bucket with a periodic refill", () => {
  it("gains its tokens at the start of each window, including missed refills, up to its burst", () => {
    expectLedger(POLICY, [
      [30_000, 3, 0, 0],
      [30_000, 3, 90_000, 0],
      [59_999, 1, 1, 0],
      [60_000, 2, 0, 0],
      [60_000, 1, 60_000, 0],
      [119_999, 1, 1, 0],
      [120_000, 3, 60_000, 2],
      [180_000, 3, 0, 0],
      [300_000, 3, 0, 0],
      [660_000, 4, NEVER, 3],
      [660_000, 0, 0, 3],
    ])
  })

  it("raises its usage to the burst in filled(), unless the usage is already higher", () => {
    const { filled } = algorithmOf(POLICY)
    expect(filled?.({ startMs: 5, current: 1, previous: 0 }, POLICY).current).toBe(3)
    expect(filled?.({ startMs: 5, current: 4, previous: 0 }, POLICY).current).toBe(4)
  })

  it.each([
    // Columns: missing tokens, limit, milliseconds until the bucket is full.
    [0, 2, 0],
    [1, 2, 60_000],
    [2, 2, 60_000],
    [3, 2, 120_000],
    // The state is kept for a window in case the limit is raised again.
    [3, 0, 60_000],
    [0, 0, 0],
  ])("refills %i missing tokens, under a limit of %i, after %i ms", (current, limit, ms) => {
    const state = { startMs: 60_000, current, previous: 0 }
    const { emptyAtMs, resetAfterMs } = algorithmOf(POLICY)
    expect(emptyAtMs(state, { ...POLICY, limit })).toBe(60_000 + ms)
    if (limit > 0) expect(resetAfterMs(state, POLICY, 70_000)).toBe(Math.max(0, ms - 10_000))
  })

  it("returns the same state object within the current window, because that is the hot path", () => {
    const state = { startMs: 60_000, current: 2, previous: 0 }
    for (const atMs of [60_000, 119_999]) expect(algorithmOf(POLICY).at(state, POLICY, atMs)).toBe(state)
  })

  it("counts refused units up to its burst, and returns the same state if nothing changes", () => {
    const { withRejected, withoutUnits } = algorithmOf(POLICY)
    const state = { startMs: 60_000, current: 2, previous: 0 }
    expect(withRejected(state, POLICY, 2, 60_000)).toEqual({ ...state, current: 3 })
    const full = { ...state, current: 3 }
    expect(withRejected(full, POLICY, 2, 60_000)).toBe(full)
    expect(withoutUnits(state, POLICY, 2, { ...state, startMs: 0 }, 60_000)).toBe(state)
  })

  it("admits a request of cost 0, even if its burst was lowered below the number of missing tokens", () => {
    const state = { startMs: 60_000, current: 9, previous: 0 }
    expect(algorithmOf(POLICY).retryAfterMs(state, POLICY, 0, 60_000)).toBe(0)
  })

  it("refills nothing under a limit of 0", () => {
    const counter = new Counter(POLICY)
    counter.take(0, 1)
    const none = new Counter({ ...POLICY, limit: 0 })
    none.state = counter.state
    expect([none.take(0, 1), none.take(0, 0), none.waitMs(0, 1)]).toEqual([false, true, NEVER])
    expect(none.algorithm.resetAfterMs(none.look(600_000), none.policy, 600_000)).toBe(NEVER)
  })
})
