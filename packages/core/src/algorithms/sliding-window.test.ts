import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { Policy } from "../ground/policy.ts"
import type { CounterState } from "./algorithm.ts"
import { slidingWindow } from "./sliding-window.ts"

const MINUTE = 60_000
const MONTH = 30 * 86_400_000
const NEVER = Number.POSITIVE_INFINITY
const MOST = Number.MAX_SAFE_INTEGER

/** Returns the whole units that would be admitted now. */
function remaining(state: CounterState, policy: Policy, nowMs: number): number {
  return Math.max(0, policy.limit - slidingWindow.used(state, policy, nowMs))
}

function policyOf(limit: number, windowMs: number = MINUTE): Policy {
  return { name: "p", counter: "p", algorithm: "sliding-window", limit, windowMs, align: "epoch" }
}

/** Returns a state in the hundredth window, with P units in the previous window and C units in the current window. */
function stateOf(previous: number, current: number, windowMs: number = MINUTE): CounterState {
  return { startMs: 100 * windowMs, current, previous }
}

describe("a sliding window of one minute", () => {
  it.each([
    // Columns: limit, previous, current, elapsed, cost, retry after.
    [40, 50, 5, 24_600, 1, 0],
    [40, 50, 10, 24_600, 1, 0],
    [40, 50, 10, 24_000, 1, 1],
    [40, 50, 11, 24_600, 1, 601],
    [100, 100, 0, 0, 1, 1],
    [100, 100, 0, 1, 1, 0],
    [100, 0, 100, 30_000, 1, 30_001],
    [10, 0, 10, 59_999, 1, 2],
    [10, 0, 0, 0, 10, 0],
    [10, 0, 0, 0, 11, NEVER],
    [5, 7, 3, 30_000, 1, 12_858],
    [10, 10, 2, 54_000, 1, 0],
  ])(
    "with limit %i, counts %i and %i, %i ms elapsed and cost %i, reports a wait of %d ms",
    (L, P, C, e, cost, retryAfterMs) => {
      const state = stateOf(P, C)
      const nowMs = state.startMs + e
      expect(slidingWindow.retryAfterMs(state, policyOf(L), cost, nowMs)).toBe(retryAfterMs)
      expect(slidingWindow.admits(state, policyOf(L), cost, nowMs)).toBe(retryAfterMs === 0)
    },
  )
})

describe("a sliding window", () => {
  it.each([
    // Columns: limit, previous, current, elapsed, remaining, reset after.
    [10, 0, 0, 0, 10, 0],
    [10, 0, 0, 59_999, 10, 0],
    [10, 0, 1, 0, 9, 60_001],
    [10, 0, 10, 30_000, 0, 30_000 + 54_001],
    [10, 10, 0, 0, 0, 54_001],
    [10, 10, 0, 6_000, 1, 48_001],
    [10, 10, 0, 6_001, 2, 48_000],
    [10, 10, 0, 54_000, 9, 1],
    [10, 10, 0, 54_001, 10, 0],
    [10, 1, 0, 0, 9, 1],
    [10, 1, 0, 1, 10, 0],
    // The limit was lowered, so more units are counted than it allows.
    [10, 40, 0, 0, 0, 58_501],
    [10, 0, 40, 0, 0, 60_000 + 58_501],
    [10, 100_000, 0, 59_999, 9, 1],
    [0, 0, 0, 0, 0, 0],
  ])(
    "with limit %i, counts %i and %i, and %i ms elapsed, has %i units left and resets after %i ms",
    (L, P, C, e, left, resetMs) => {
      const state = stateOf(P, C)
      const nowMs = state.startMs + e
      expect(remaining(state, policyOf(L), nowMs)).toBe(left)
      expect(slidingWindow.resetAfterMs(state, policyOf(L), nowMs)).toBe(resetMs)
    },
  )

  it("admits again after exactly two windows if the limit was lowered far below the counts", () => {
    const state = stateOf(0, 1_000_000)
    expect(slidingWindow.retryAfterMs(state, policyOf(1), 1, state.startMs)).toBe(2 * MINUTE)
  })

  it("admits a cost of 0, even if the counted units exceed a lowered limit", () => {
    const state = stateOf(40, 40)
    expect(slidingWindow.admits(state, policyOf(10), 0, state.startMs)).toBe(true)
    expect(slidingWindow.retryAfterMs(state, policyOf(10), 0, state.startMs)).toBe(0)
  })

  it("counts refused units up to the limit, and returns the same state if nothing changes", () => {
    const { withRejected } = slidingWindow
    expect(withRejected(stateOf(8, 5), policyOf(10), 3, 100 * MINUTE)).toEqual(stateOf(8, 8))
    expect(withRejected(stateOf(8, 5), policyOf(10), 9, 100 * MINUTE)).toEqual(stateOf(8, 10))
    for (const current of [10, 40]) {
      const full = stateOf(0, current)
      expect(withRejected(full, policyOf(10), 9, 100 * MINUTE)).toBe(full)
    }
  })

  it("never admits a unit under a limit of 0", () => {
    const state = stateOf(0, 0)
    expect(slidingWindow.admits(state, policyOf(0), 1, state.startMs)).toBe(false)
    expect(slidingWindow.retryAfterMs(state, policyOf(0), 1, state.startMs)).toBe(NEVER)
  })
})

describe("the state of a sliding window", () => {
  it.each([
    ["is empty if nothing was taken yet", undefined, 30_000, [0, 0, 0]],
    ["stays the same until the end of its window", [3, 4, 0], 59_999, [3, 4, 0]],
    ["moves its count to the previous window when the next window starts", [3, 4, 0], 60_000, [4, 0, 60_000]],
    ["keeps the moved count until the end of the next window", [3, 4, 0], 119_999, [4, 0, 60_000]],
    ["moves only its current count, and drops the previous count", [3, 4, 60_000], 120_000, [4, 0, 120_000]],
    ["is empty after two windows", [3, 4, 0], 120_000, [0, 0, 120_000]],
    ["is empty many windows later", [3, 4, 0], 6_000_000, [0, 0, 6_000_000]],
    ["stays the same if the clock is set back within the window", [3, 4, 60_000], 60_000, [3, 4, 60_000]],
    [
      "combines both counts if the clock is set back to the previous window",
      [3, 4, 60_000],
      59_999,
      [0, 7, 0],
    ],
    ["combines both counts if the clock is set back by hours", [3, 4, 36_000_000], 119_999, [0, 7, 60_000]],
    [
      "combines both counts to at most a safe integer if the clock is set back",
      [MOST, 5, 60_000],
      59_999,
      [0, MOST, 0],
    ],
  ] as const)("%s", (_when, stored, nowMs, [previous, current, startMs]) => {
    const state = stored && { previous: stored[0], current: stored[1], startMs: stored[2] }
    expect(slidingWindow.at(state, policyOf(10), nowMs)).toEqual({ previous, current, startMs })
  })

  it("is the same object within its window, because that is the hot path", () => {
    const state = stateOf(3, 4)
    for (const afterMs of [0, MINUTE - 1]) {
      expect(slidingWindow.at(state, policyOf(10), state.startMs + afterMs)).toBe(state)
    }
  })
})

describe("a steady client at exactly the limit", () => {
  it.each([
    [1, MINUTE],
    [10, MINUTE],
    [60, MINUTE],
    [7, 7_000],
    [1_000, MINUTE],
  ])("with %i requests in %i ms is never refused, whenever it starts", (limit, windowMs) => {
    const every = windowMs / limit
    for (const phase of new Set([1, 2, Math.floor(every / 3) || 1, Math.ceil(every / 2), every - 1])) {
      expect(refusedOf(limit, windowMs, phase), `from ${phase} ms into a window`).toBe(0)
    }
  })

  function refusedOf(limit: number, windowMs: number, phase: number): number {
    let state: CounterState | undefined
    let refused = 0
    for (let i = 0; i < 20 * Math.min(limit, 100); i++) {
      const nowMs = 100 * windowMs + phase + (i * windowMs) / limit
      state = slidingWindow.at(state, policyOf(limit, windowMs), nowMs)
      if (slidingWindow.admits(state, policyOf(limit, windowMs), 1, nowMs)) {
        state = slidingWindow.withUnits(state, policyOf(limit, windowMs), 1, nowMs)
      } else refused++
    }
    return refused
  }
})

describe("a sliding window with large numbers", () => {
  it("counts five million units a month in whole seconds", () => {
    const policy = policyOf(5_000_000, MONTH)
    const state = stateOf(5_000_000, 0, MONTH)
    // 5,000,000 / 2,592,000 s are 1.93 units per second. The count is rounded down, so 2 units remain after one
    // second and 4 units after two seconds.
    const left = [0, 999, 1_000, 1_999, 2_000].map((e) => remaining(state, policy, state.startMs + e))
    expect(left).toEqual([0, 0, 2, 2, 4])
    expect(slidingWindow.retryAfterMs(state, policy, 1, state.startMs)).toBe(1_000)
    expect(slidingWindow.retryAfterMs(state, policy, 3, state.startMs + 999)).toBe(1_001)
  })

  it("still counts three million units a month in milliseconds", () => {
    const state = stateOf(3_000_000, 0, MONTH)
    expect(slidingWindow.retryAfterMs(state, policyOf(3_000_000, MONTH), 1, state.startMs)).toBe(1)
  })

  it("admits again by its end, even if its length is not a whole number of seconds", () => {
    const windowMs = MONTH + 1
    const state = stateOf(MOST, 0, windowMs)
    expect(slidingWindow.retryAfterMs(state, policyOf(1, windowMs), 1, state.startMs)).toBe(windowMs)
    expect(slidingWindow.resetAfterMs(state, policyOf(1, windowMs), state.startMs)).toBe(windowMs)
  })

  const count = fc.oneof(
    fc.nat(100),
    fc.nat(10_000_000),
    fc.integer({ min: 0, max: MOST }),
    fc.constant(MOST),
  )
  const window = fc.oneof(
    fc.integer({ min: 1, max: 100_000 }),
    fc.constantFrom(MINUTE, MONTH, 12 * MONTH, 40 * MONTH, 1_000 * MONTH),
    fc.integer({ min: 1, max: 50 * MONTH }),
  )
  const rows = fc
    .record({
      limit: count,
      previous: count,
      current: count,
      cost: count,
      windowMs: window,
      share: fc.nat(1_000),
    })
    .map(({ share, ...row }) => ({ ...row, elapsed: Math.floor((row.windowMs * share) / 1_001) }))

  it("reports the exact remaining units for any count, limit and window length", () => {
    fc.assert(
      fc.property(rows, ({ limit, previous, current, windowMs, elapsed }) => {
        const state = stateOf(previous, current, windowMs)
        const left = BigInt(limit) - weighted(previous, elapsed, limit, windowMs) - BigInt(current)
        const told = remaining(state, policyOf(limit, windowMs), state.startMs + elapsed)
        expect(told).toBe(left > 0n ? Number(left) : 0)
      }),
      { seed: 4_001, numRuns: 1_000 },
    )
  })

  it("reports the exact verdict and wait for any count, limit and window length", () => {
    fc.assert(
      fc.property(rows, ({ limit, previous, current, cost, windowMs, elapsed }) => {
        const policy = policyOf(limit, windowMs)
        const state = stateOf(previous, current, windowMs)
        const nowMs = state.startMs + elapsed
        const fits = (ms: number) =>
          cost === 0 || isAdmitted(previous, current, cost, limit, windowMs, elapsed + ms)
        expect(slidingWindow.admits(state, policy, cost, nowMs)).toBe(fits(0))
        const waitMs = slidingWindow.retryAfterMs(state, policy, cost, nowMs)
        if (cost > limit) {
          expect(waitMs).toBe(NEVER)
          return
        }
        expect(Number.isSafeInteger(waitMs) && waitMs >= 0).toBe(true)
        expect(fits(waitMs)).toBe(true)
        if (waitMs > 0) expect(fits(waitMs - 1)).toBe(false)
      }),
      { seed: 4_002, numRuns: 1_000 },
    )
  })

  it("reports an exact wait if a quotient is just below an integer and its product must be rounded", () => {
    const seconds = MONTH / 1_000
    for (let i = 0; i < 2_000; i++) {
      const previous = MOST - i * 7_919
      // The most units that are available again after this number of seconds. One more unit is available a second
      // later.
      const due = Number((BigInt((i * 1_297) % seconds) * BigInt(previous)) / BigInt(seconds))
      const limit = previous - due
      const waitMs = slidingWindow.retryAfterMs(
        stateOf(previous, 0, MONTH),
        policyOf(limit, MONTH),
        1,
        100 * MONTH,
      )
      const opensAt = (BigInt(due) * BigInt(seconds)) / BigInt(previous) + 1n
      expect(waitMs).toBe(Number(opensAt) * 1_000)
    }
  })

  /** Returns floor(P * (w - e) / w) in units of time, by definition. */
  function weighted(previous: number, elapsed: number, limit: number, windowMs: number): bigint {
    const largest = BigInt(Math.max(previous, limit))
    const seconds = Math.ceil(windowMs / 1_000 / 94_000_000)
    const unit = largest * BigInt(windowMs) < 2n ** 53n ? 1n : 1_000n * BigInt(seconds)
    const window = (BigInt(windowMs) + unit - 1n) / unit
    return (BigInt(previous) * (window - BigInt(elapsed) / unit)) / window
  }

  /** Whether the cost fits at an offset from the start of the current window. The offset may lie in a later window. */
  function isAdmitted(
    P: number,
    C: number,
    cost: number,
    limit: number,
    windowMs: number,
    offset: number,
  ): boolean {
    if (offset >= 2 * windowMs) return cost <= limit
    const [previous, current, elapsed] = offset < windowMs ? [P, C, offset] : [C, 0, offset - windowMs]
    return weighted(previous, elapsed, limit, windowMs) + BigInt(current) + BigInt(cost) <= BigInt(limit)
  }
})
