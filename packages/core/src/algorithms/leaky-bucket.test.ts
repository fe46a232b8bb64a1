import { describe, expect, it } from "vitest"
import { leakyBucket } from "./bucket.ts"
import { algorithmOf } from "./kinds.ts"
import { Counter, expectLedger, policyOf } from "./testing/counter-story.ts"

/** A policy with one unit every 100 ms and room for three units. */
const POLICY = policyOf({ algorithm: "leaky-bucket", limit: 10, windowMs: 1_000, burst: 3 })

/** Takes the cost. Returns for how long an admitted request waits, or undefined if the request is refused. */
function delayOf(counter: Counter, atMs: number, cost: number): number | undefined {
  if (!counter.take(atMs, cost)) return undefined
  return counter.algorithm.delayMs?.(counter.look(atMs), counter.policy, cost, atMs)
}

describe("the leaky bucket", () => {
  it("admits requests until the bucket is full", () => {
    expectLedger(POLICY, [
      [0, 3, 0, 0],
      [0, 1, 100, 0],
      [99, 1, 1, 0],
      [100, 1, 0, 0],
      [250, 1, 0, 0],
      [250, 4, Number.POSITIVE_INFINITY, 0],
      [10_000, 0, 0, 3],
    ])
  })

  it("delays each request until all units before it have leaked out", () => {
    const counter = new Counter(POLICY)
    const rows = [
      [0, 1, 0],
      [0, 1, 100],
      [0, 1, 200],
      [0, 1, undefined],
      [100, 1, 200],
      // Half a unit has leaked out since, so two and a half units are left, and another unit does not fit.
      [150, 1, undefined],
      [250, 1, 150],
      [300, 1, 200],
      [399, 1, undefined],
      [5_000, 3, 0],
      [5_100, 1, 200],
    ] as const
    expect(rows.map(([atMs, cost]) => [atMs, cost, delayOf(counter, atMs, cost)])).toEqual(rows)
  })

  it.each([
    // Columns: limit, units and parts in the bucket, how many of the units were taken last, how long these units
    // wait.
    [10, 1, 0, 1, 0],
    [10, 1, 500, 1, 50],
    [10, 3, 0, 2, 100],
    [10, 3, 1, 2, 101],
    // Units that are alone in the bucket do not wait, even if nothing leaks out.
    [0, 2, 0, 2, 0],
    [0, 3, 0, 2, Number.POSITIVE_INFINITY],
    [0, 2, 1, 2, Number.POSITIVE_INFINITY],
  ])(
    "at %i units per second, with a level of %i + %i / 1,000, delays %i units by %d ms",
    (limit, current, previous, units, delayMs) => {
      const state = { startMs: 7_000, current, previous }
      expect(leakyBucket.delayMs?.(state, { ...POLICY, limit }, units, 7_000)).toBe(delayMs)
    },
  )

  it("is the only algorithm that delays admitted requests", () => {
    const delays = ["token-bucket", "sliding-log", "sliding-window", "fixed-window"] as const
    expect(delays.map((algorithm) => algorithmOf({ ...POLICY, algorithm }).delayMs)).toEqual(
      delays.map(() => undefined),
    )
  })
})
