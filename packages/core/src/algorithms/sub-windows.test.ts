import { describe, expect, it } from "vitest"
import type { CounterState } from "./algorithm.ts"
import { pack, unpack } from "./packed-counts.ts"
import {
  bucketMsOf,
  bucketsOf,
  oldestAfter,
  subWindowsAt,
  subWindowsEndAtMs,
  subWindowsWithRejected,
  withoutUnitsOf,
} from "./sub-windows.ts"
import { policyOf } from "./testing/counter-story.ts"

/** A policy with a window of a minute in three sub-windows of 20 s. */
const POLICY = policyOf({ algorithm: "sliding-window-strict", limit: 100, windowMs: 60_000, buckets: 3 })

/** A state with 4 units in the tenth sub-window, and 3, 2 and 1 in the sub-windows before it. */
const FULL: CounterState = { startMs: 200_000, current: 4, previous: 6, parts: pack([3, 2, 1]) }

function plain({ startMs, current, previous, parts = "" }: CounterState) {
  return [startMs, current, previous, unpack(parts)]
}

describe("sub-windows", () => {
  it.each([
    // Columns: window, requested sub-windows, actual sub-windows, length of each sub-window.
    [60_000, 60, 60, 1_000],
    [3_600_000, 3, 3, 1_200_000],
    [60_000, 1, 1, 60_000],
    [100, 30, 25, 4],
    [61, 60, 31, 2],
    [7, 60, 7, 1],
    [1, 60, 1, 1],
  ])(
    "divide a window of %i ms, with %i sub-windows requested, into %i sub-windows of %i ms",
    (windowMs, buckets, count, lengthMs) => {
      const policy = { ...POLICY, windowMs, buckets }
      expect([bucketsOf(policy), bucketMsOf(policy)]).toEqual([count, lengthMs])
    },
  )

  it.each([
    // Columns: time, start, current, sum of the parts, parts.
    [200_000, 200_000, 4, 6, [3, 2, 1]],
    [219_999, 200_000, 4, 6, [3, 2, 1]],
    [220_000, 220_000, 0, 9, [4, 3, 2]],
    [259_999, 240_000, 0, 7, [0, 4, 3]],
    [260_000, 260_000, 0, 4, [0, 0, 4]],
    [279_999, 260_000, 0, 4, [0, 0, 4]],
    [280_000, 280_000, 0, 0, []],
    [9_000_000, 9_000_000, 0, 0, []],
    // The clock went back.
    [199_999, 180_000, 7, 3, [2, 1]],
    [180_000, 180_000, 7, 3, [2, 1]],
    [179_999, 160_000, 9, 1, [1]],
    [140_000, 140_000, 10, 0, []],
    [139_999, 120_000, 10, 0, []],
    [20_000, 20_000, 10, 0, []],
  ])(
    "at %i ms start at %i, with the current count %i and earlier counts that add up to %i: %j",
    (atMs, startMs, current, previous, counts) => {
      expect(plain(subWindowsAt(FULL, POLICY, atMs))).toEqual([startMs, current, previous, counts])
    },
  )

  it("are empty and stay empty if no units were taken", () => {
    const empty = { startMs: 200_000, current: 0, previous: 0, parts: "" }
    expect(subWindowsAt(undefined, POLICY, 205_000)).toEqual(empty)
    expect(subWindowsAt({ ...empty, startMs: 180_000 }, POLICY, 205_000)).toEqual(empty)
  })

  it.each([
    // Columns: units, start of their sub-window, current, sum of the parts, parts.
    [3, 200_000, 1, 6, [3, 2, 1]],
    [9, 200_000, 0, 6, [3, 2, 1]],
    [-5, 200_000, 9, 6, [3, 2, 1]],
    [2, 180_000, 4, 4, [1, 2, 1]],
    [9, 160_000, 4, 4, [3, 0, 1]],
    [1, 140_000, 4, 5, [3, 2]],
    [-70, 140_000, 4, 76, [3, 2, 71]],
    // The sub-window has expired or is in the future.
    [1, 120_000, 4, 6, [3, 2, 1]],
    [-5, 120_000, 4, 6, [3, 2, 1]],
    [1, 220_000, 4, 6, [3, 2, 1]],
  ])(
    "after a refund of %i units to the sub-window at %i ms, count %i current and %i earlier units: %j",
    (units, takenMs, current, sum, counts) => {
      const left = withoutUnitsOf(FULL, POLICY, units, takenMs)
      expect(plain(left)).toEqual([200_000, current, sum, counts])
    },
  )

  it.each([
    // Columns: limit, current, refused units, new current.
    [100, 4, 9, 13],
    [10, 4, 9, 10],
    [10, 12, 9, 12],
    [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER - 8, 9, Number.MAX_SAFE_INTEGER - 6],
  ])(
    "under a limit of %i, with current count %i and %i refused units, have the current count %i",
    (limit, current, units, expected) => {
      const state = subWindowsWithRejected({ ...FULL, current }, { ...POLICY, limit }, units)
      expect(plain(state)).toEqual([200_000, expected, 6, [3, 2, 1]])
    },
  )

  it("treat a state without `parts` as a state with empty `parts`", () => {
    const state: CounterState = { startMs: 200_000, current: 4, previous: 0 }
    const next = { startMs: 220_000, current: 0, previous: 4, parts: "14" }
    expect(subWindowsAt(state, POLICY, 220_000)).toEqual(next)
    expect(plain(subWindowsAt(state, POLICY, 180_000))).toEqual([180_000, 4, 0, []])
    expect(withoutUnitsOf(state, POLICY, 1, 200_000)).toEqual({ ...state, current: 3, parts: "" })
    expect(subWindowsAt(state, POLICY, 280_000)).toEqual({
      ...state,
      startMs: 280_000,
      current: 0,
      parts: "",
    })
    expect(plain(withoutUnitsOf(state, POLICY, -1, 180_000))).toEqual([200_000, 4, 1, [1]])
    expect(subWindowsEndAtMs({ ...state, current: 0 }, POLICY)).toBe(200_000)
    expect([0, 1, 2, 3].map((by) => oldestAfter(state, POLICY, by))).toEqual([0, 0, 0, 4])
  })

  it("charge units to an earlier sub-window that had no units", () => {
    const state = { startMs: 200_000, current: 4, previous: 0, parts: "" }
    expect(plain(withoutUnitsOf(state, POLICY, -2, 160_000))).toEqual([200_000, 4, 2, [0, 2]])
  })

  it.each([
    [FULL, 280_000],
    [{ ...FULL, current: 0 }, 260_000],
    [{ ...FULL, current: 0, previous: 3, parts: pack([0, 2, 1]) }, 240_000],
    [{ ...FULL, current: 0, previous: 1, parts: pack([0, 0, 1]) }, 220_000],
    [{ ...FULL, current: 0, previous: 0, parts: "" }, 200_000],
  ])("in the state %j expire at %i ms", (state, endMs) =>
    expect(subWindowsEndAtMs(state, POLICY)).toBe(endMs),
  )

  it("expire one by one, from the oldest sub-window to the current sub-window", () => {
    expect([0, 1, 2, 3, 4, 5].map((by) => oldestAfter(FULL, POLICY, by))).toEqual([1, 2, 3, 4, 0, 0])
  })

  it("keep their sum a safe integer when the clock is set back", () => {
    const most = Number.MAX_SAFE_INTEGER
    const state = { startMs: 200_000, current: most, previous: 5, parts: pack([5]) }
    expect(plain(subWindowsAt(state, POLICY, 0))).toEqual([0, most, 0, []])
    const kept = { startMs: 200_000, current: most, previous: 8, parts: pack([5, 3]) }
    expect(plain(subWindowsAt(kept, POLICY, 180_000))).toEqual([180_000, most - 3, 3, [3]])
  })

  it("do not expire later than with a steady clock if the clock jumps back and forth around a boundary", () => {
    let state: CounterState | undefined = FULL
    for (let i = 0; i < 10; i++) {
      state = subWindowsAt(state, POLICY, 199_999)
      state = subWindowsAt(state, POLICY, 200_000)
    }
    // The result is the same as without the jumps, except that the last units now belong to the sub-window to which
    // the clock went back.
    expect(plain(state)).toEqual([200_000, 0, 10, [7, 2, 1]])
    expect(subWindowsEndAtMs(state, POLICY)).toBe(260_000)
  })
})
