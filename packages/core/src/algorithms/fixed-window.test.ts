import { describe, expect, it } from "vitest"
import type { Alignment, Policy } from "../ground/policy.ts"
import type { CounterState } from "./algorithm.ts"
import { fixedWindow } from "./fixed-window.ts"

const MINUTE = 60_000
const NEVER = Number.POSITIVE_INFINITY
const START = 100 * MINUTE

function policyOf(limit: number, align: Alignment = "epoch"): Policy {
  return { name: "p", counter: "p", algorithm: "fixed-window", limit, windowMs: MINUTE, align }
}

function stateOf(current: number, startMs: number = START): CounterState {
  return { startMs, current, previous: 0 }
}

describe("what is counted, left and waited for, in a window of one minute", () => {
  it.each([
    // limit, current, elapsed, cost, remaining, retry after, reset after
    [10, 0, 0, 10, 10, 0, 0],
    [10, 0, 59_999, 1, 10, 0, 0],
    [10, 0, 0, 11, 10, NEVER, 0],
    [10, 1, 0, 9, 9, 0, 60_000],
    [10, 1, 0, 10, 9, 60_000, 60_000],
    [10, 9, 30_000, 1, 1, 0, 30_000],
    [10, 10, 30_000, 1, 0, 30_000, 30_000],
    [10, 10, 59_999, 1, 0, 1, 1],
    [10, 10, 59_999, 11, 0, NEVER, 1],
    [10, 10, 30_000, 0, 0, 0, 30_000],
    // The limit was cut.
    [10, 40, 30_000, 1, 0, 30_000, 30_000],
    [10, 40, 30_000, 0, 0, 0, 30_000],
    [0, 0, 0, 1, 0, NEVER, 0],
    [Number.MAX_SAFE_INTEGER, 1, 0, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER - 1, 60_000, 60_000],
    [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, 0, 1, 0, 60_000, 60_000],
  ])("limit %i, %i now, %i ms in, cost %i: %i left, retry after %d ms, full again after %i ms", (...row) => {
    const [limit, current, elapsed, cost, left, retryAfterMs, resetAfterMs] = row
    const policy = policyOf(limit)
    const state = stateOf(current)
    const nowMs = START + elapsed
    expect(Math.max(0, limit - fixedWindow.used(state, policy, nowMs))).toBe(left)
    expect(fixedWindow.admits(state, policy, cost, nowMs)).toBe(retryAfterMs === 0)
    expect(fixedWindow.retryAfterMs(state, policy, cost, nowMs)).toBe(retryAfterMs)
    expect(fixedWindow.resetAfterMs(state, policy, nowMs)).toBe(resetAfterMs)
  })

  it("taking counts in the present window", () => {
    expect(fixedWindow.withUnits(stateOf(3), policyOf(10), 4, START)).toEqual(stateOf(7))
  })

  it("counts what it refuses up to the limit, and hands back the state where there is nothing to write", () => {
    const { withRejected } = fixedWindow
    expect(withRejected(stateOf(5), policyOf(10), 3, START)).toEqual(stateOf(8))
    expect(withRejected(stateOf(5), policyOf(10), 9, START)).toEqual(stateOf(10))
    for (const current of [10, 40]) {
      const full = stateOf(current)
      expect(withRejected(full, policyOf(10), 9, START)).toBe(full)
    }
  })

  it("a counter is empty at the end of its window, and one that nobody took from is empty at once", () => {
    expect(fixedWindow.emptyAtMs(stateOf(1), policyOf(10))).toBe(START + MINUTE)
    expect(fixedWindow.emptyAtMs(stateOf(0), policyOf(10))).toBe(START)
  })
})

describe("windows aligned to the epoch", () => {
  it.each([
    ["nobody has taken", undefined, START + 7, stateOf(0)],
    ["the first millisecond", stateOf(4), START, stateOf(4)],
    ["the last millisecond", stateOf(4), START + 59_999, stateOf(4)],
    ["the next window", stateOf(4), START + MINUTE, stateOf(0, START + MINUTE)],
    ["long after", stateOf(4), START + 10 * MINUTE + 5, stateOf(0, START + 10 * MINUTE)],
    ["the clock went back to the window before", stateOf(4), START - 1, stateOf(4)],
    ["the clock went back by exactly one window", stateOf(4), START - MINUTE, stateOf(4)],
    ["the clock went back by more than a window", stateOf(4), START - MINUTE - 1, stateOf(4, START - MINUTE)],
    ["the clock went back by hours", stateOf(4), START - 50 * MINUTE + 9, stateOf(4, START - 49 * MINUTE)],
    ["the clock went back and nobody had taken", stateOf(0), START - 1, stateOf(0, START - MINUTE)],
  ])("%s", (_when, state, nowMs, expected) => {
    expect(fixedWindow.at(state, policyOf(10), nowMs)).toEqual(expected)
  })

  it("the state of the present window is handed back as it is, since most requests find that", () => {
    for (const nowMs of [START, START + 59_999]) {
      const state = stateOf(4)
      expect(fixedWindow.at(state, policyOf(10), nowMs)).toBe(state)
    }
  })

  it("a clock that trembles around a boundary opens neither window twice", () => {
    const policy = policyOf(10)
    let state: CounterState | undefined
    let admitted = 0
    for (let i = 0; i < 100; i++) {
      const nowMs = START + (i % 2 === 0 ? 0 : -1)
      state = fixedWindow.at(state, policy, nowMs)
      const units = policy.limit - fixedWindow.used(state, policy, nowMs)
      state = fixedWindow.withUnits(state, policy, units, nowMs)
      admitted += units
    }
    expect(admitted).toBe(10)
  })
})

describe("windows that start with the first request", () => {
  const policy = policyOf(10, "first-hit")

  it.each([
    ["nobody has taken: it starts now", undefined, START + 7, stateOf(0, START + 7)],
    ["everything was given back: it starts now", stateOf(0, START + 7), START + 9, stateOf(0, START + 9)],
    ["the last millisecond", stateOf(4, START + 7), START + 60_006, stateOf(4, START + 7)],
    ["its end", stateOf(4, START + 7), START + 60_007, stateOf(0, START + 60_007)],
    ["the clock went back a little", stateOf(4, START + 7), START + 6, stateOf(4, START + 7)],
    [
      "the clock went back by hours",
      stateOf(4, START + 7),
      START - 50 * MINUTE,
      stateOf(4, START - 49 * MINUTE),
    ],
  ])("%s", (_when, state, nowMs, expected) => {
    expect(fixedWindow.at(state, policy, nowMs)).toEqual(expected)
  })

  it("a window of one minute from the first request: ten, then none for the rest of it, then ten", () => {
    const startMs = START + 12_345
    let state: CounterState | undefined
    const ledger = [0, 1, 47_655, 59_999, 60_000, 60_001, 119_999, 120_000].map((afterMs) => {
      const nowMs = startMs + afterMs
      state = fixedWindow.at(state, policy, nowMs)
      const units = policy.limit - fixedWindow.used(state, policy, nowMs)
      state = fixedWindow.withUnits(state, policy, units, nowMs)
      return units
    })
    expect(ledger).toEqual([10, 0, 0, 0, 10, 0, 0, 10])
  })
})

describe("units that are given back", () => {
  it.each([
    ["come off the window they were taken in", 3, START, 1],
    ["never make it negative", 5, START, 0],
    ["are charged on top when they are negative", -9, START, 13],
    ["are nothing when their window has passed", 3, START - MINUTE, 4],
    ["are nothing when their window is yet to come", 3, START + MINUTE, 4],
  ])("%s", (_what, units, takenInMs, left) => {
    const after = stateOf(4, takenInMs)
    expect(fixedWindow.withoutUnits(stateOf(4), policyOf(10), units, after, START)).toEqual(stateOf(left))
  })
})

describe("units that are charged later to a window that starts with its first request", () => {
  const policy = policyOf(10, "first-hit")
  const nothing = stateOf(0, START + 7)

  it.each([
    ["start one when nothing had been taken", stateOf(0, START + 20), -5, START + 20, stateOf(5, START + 7)],
    ["are of the one that has begun since", stateOf(4, START + 15), -5, START + 20, stateOf(9, START + 15)],
    ["start one now when the clock went back", stateOf(0, START), -5, START, stateOf(5, START)],
    [
      "start one until its last millisecond",
      stateOf(0, START + 60_006),
      -5,
      START + 60_006,
      stateOf(5, START + 7),
    ],
    [
      "are nothing when it has passed",
      stateOf(0, START + 60_007),
      -5,
      START + 60_007,
      stateOf(0, START + 60_007),
    ],
    ["start none when there are none", stateOf(0, START + 20), 0, START + 20, stateOf(0, START + 20)],
    ["start none when they are given back", stateOf(0, START + 20), 3, START + 20, stateOf(0, START + 20)],
  ] as const)("%s", (_what, state, units, nowMs, expected) => {
    expect(fixedWindow.withoutUnits(state, policy, units, nothing, nowMs)).toEqual(expected)
  })

  it("are of no other window where windows are aligned, though the clock has gone back to it", () => {
    const state = stateOf(0, START - MINUTE)
    expect(fixedWindow.withoutUnits(state, policyOf(10), -5, stateOf(0), START - 1)).toBe(state)
  })
})
