import type { Policy } from "@sluice/core/stores"
import { describe, expect, it } from "vitest"
import { isLeasable, leaseMsOf, nextHoldOffMs, partEndMs, sizeOf, withoutExtras } from "./sizing.ts"

const MINUTE = 60_000

const SLIDING: Policy = {
  name: "all",
  counter: "all",
  algorithm: "sliding-window",
  limit: 1_000,
  windowMs: MINUTE,
  align: "epoch",
}

describe("the counters that are leased", () => {
  const rows: readonly [what: string, policy: Partial<Policy>, expected: boolean][] = [
    ["a limit of leastLimit", {}, true],
    ["a limit below leastLimit", { limit: 999 }, false],
    ["sub-windows", { buckets: 12 }, true],
    ["a strict window", { algorithm: "sliding-window-strict", buckets: 60 }, true],
    ["a fixed window", { algorithm: "fixed-window" }, true],
    ["a window from the first hit", { algorithm: "fixed-window", align: "first-hit" }, true],
    ["a token bucket", { algorithm: "token-bucket", burst: 10 }, true],
    ["a periodic token bucket", { algorithm: "token-bucket", refill: "periodic" }, true],
    ["a log, whose entries have a time", { algorithm: "sliding-log" }, false],
    ["a leaky bucket, whose requests have a turn", { algorithm: "leaky-bucket" }, false],
    ["a penalty", { algorithm: "penalty" }, false],
    ["an unknown algorithm", { algorithm: "of-another-version" }, false],
    ["a window so short that a lease would last less than a millisecond", { windowMs: 19 }, false],
    ["the shortest window", { windowMs: 20 }, true],
  ]
  it.each(rows)("%s: %o is leased: %s", (_, policy, expected) => {
    expect(isLeasable({ ...SLIDING, ...policy }, { leaseMs: 1_000, leastLimit: 1_000 })).toBe(expected)
  })
})

describe("how long unused units are held", () => {
  it.each([
    ["1 s of a minute", 1_000, MINUTE, 1_000],
    ["a twentieth of a short window", 1_000, 10_000, 500],
    ["a twentieth of a second, rounded down", 1_000, 1_019, 50],
    ["less if the option says so", 200, MINUTE, 200],
    ["never more than a twentieth", 60_000, MINUTE, 3_000],
  ])("%s", (_, option, windowMs, expected) => {
    expect(leaseMsOf({ ...SLIDING, windowMs }, option)).toBe(expected)
  })
})

describe("the end of a part", () => {
  const startMs = 7 * MINUTE
  it.each([
    ["a window later", {}, MINUTE],
    ["a fixed window later", { algorithm: "fixed-window" }, MINUTE],
    [
      "the end of the calendar period",
      { algorithm: "fixed-window", periods: [startMs - 9, startMs - 2, startMs + 50_000, startMs + MINUTE] },
      50_000,
    ],
    ["a sub-window later", { buckets: 12 }, 5_000],
    ["a strict sub-window later", { algorithm: "sliding-window-strict", buckets: 60 }, 1_000],
    ["a refill period later", { algorithm: "token-bucket", refill: "periodic" }, MINUTE],
  ] as const)("is %s", (_, more, expected) => {
    const state = { startMs, current: 0, previous: 0 }
    expect(partEndMs({ ...SLIDING, ...more }, state)).toBe(startMs + expected)
  })

  it("is undefined for a bucket that refills evenly", () => {
    const state = { startMs, current: 0, previous: 0 }
    expect(partEndMs({ ...SLIDING, algorithm: "token-bucket" }, state)).toBeUndefined()
  })
})

describe("the size of a booking", () => {
  const T = 1_000
  // Each row: the demand, the held and the remaining units, the milliseconds to the end of the part, and the units to
  // book.
  it.each([
    [100, 0, 16_000, 10 * T, 100],
    [100, 30, 16_000, 10 * T, 70],
    // The part ends after half of T, so half of the demand is enough.
    [100, 30, 16_000, T / 2, 20],
    [101, 0, 16_000, T / 2, 51],
    // A booking takes at most a sixteenth of the remaining units.
    [100, 0, 800, 10 * T, 50],
    [100, 0, 815, 10 * T, 50],
    [100, 0, 816, 10 * T, 51],
    // A booking takes at least 2 units, so none is made if fewer than 32 units remain.
    [100, 0, 32, 10 * T, 2],
    [100, 0, 31, 10 * T, 0],
    [100, 0, -5, 10 * T, 0],
    [2, 0, 16_000, 10 * T, 2],
    [2, 1, 16_000, 10 * T, 0],
    [100, 120, 16_000, 10 * T, 0],
  ])(
    "with a demand of %i, %i held, %i left and %i ms to go is %i",
    (demand, held, left, restMs, expected) => {
      expect(sizeOf({ demand, held, left, restMs, leaseMs: T })).toBe(expected)
    },
  )
})

describe("the hold-off", () => {
  // Each row: the previous hold-off (0 if there was none), the units granted since the previous refusal, and the next
  // hold-off.
  it.each([
    [0, 0, 10],
    [0, 1_000, 10],
    [10, 7, 20],
    [10, 8, 10],
    [20, 64, 20],
    [20, 65, 10],
    [15, 65, 10],
    [10, 65, 10],
    [400, 0, 500],
    [500, 0, 500],
  ])("after a hold-off of %i ms and %i granted units lasts %i ms", (beforeMs, granted, expected) => {
    expect(nextHoldOffMs(beforeMs, granted, 1_000)).toBe(expected)
  })

  it("lasts at most half of T, even at first", () => {
    expect(nextHoldOffMs(0, 0, 12)).toBe(6)
    expect(nextHoldOffMs(6, 100, 12)).toBe(6)
  })
})

describe("the policy of a booking", () => {
  it("allows no extra units and counts no refusals, but refers to the same counter", () => {
    const policy = { ...SLIDING, extra: 10, countRejected: true, buckets: 6 }
    expect(withoutExtras(policy)).toStrictEqual({ ...SLIDING, buckets: 6 })
  })
})
