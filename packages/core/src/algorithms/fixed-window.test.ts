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

describe("a fixed window of one minute", () => {
  it.each([
    // Columns: limit, current, elapsed, cost, remaining, retry after, reset after.
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
    // The limit was lowered below the count.
    [10, 40, 30_000, 1, 0, 30_000, 30_000],
    [10, 40, 30_000, 0, 0, 0, 30_000],
    [0, 0, 0, 1, 0, NEVER, 0],
    [Number.MAX_SAFE_INTEGER, 1, 0, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER - 1, 60_000, 60_000],
    [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, 0, 1, 0, 60_000, 60_000],
  ])(
    "with limit %i, count %i, %i ms elapsed and cost %i, has %i left (retry after %d, reset after %i)",
    (...row) => {
      const [limit, current, elapsed, cost, left, retryAfterMs, resetAfterMs] = row
      const policy = policyOf(limit)
      const state = stateOf(current)
      const nowMs = START + elapsed
      expect(Math.max(0, limit - fixedWindow.used(state, policy, nowMs))).toBe(left)
      expect(fixedWindow.admits(state, policy, cost, nowMs)).toBe(retryAfterMs === 0)
      expect(fixedWindow.retryAfterMs(state, policy, cost, nowMs)).toBe(retryAfterMs)
      expect(fixedWindow.resetAfterMs(state, policy, nowMs)).toBe(resetAfterMs)
    },
  )

  it("counts refused units up to the limit, and returns the same state if nothing changes", () => {
    const { withRejected } = fixedWindow
    expect(withRejected(stateOf(5), policyOf(10), 3, START)).toEqual(stateOf(8))
    expect(withRejected(stateOf(5), policyOf(10), 9, START)).toEqual(stateOf(10))
    for (const current of [10, 40]) {
      const full = stateOf(current)
      expect(withRejected(full, policyOf(10), 9, START)).toBe(full)
    }
  })

  it("is empty at the end of the window, or immediately if no units were taken", () => {
    expect(fixedWindow.emptyAtMs(stateOf(1), policyOf(10))).toBe(START + MINUTE)
    expect(fixedWindow.emptyAtMs(stateOf(0), policyOf(10))).toBe(START)
  })
})

describe("a window aligned to the epoch", () => {
  it.each([
    ["is empty if nothing was taken yet", undefined, START + 7, stateOf(0)],
    ["keeps its count in its first millisecond", stateOf(4), START, stateOf(4)],
    ["keeps its count in its last millisecond", stateOf(4), START + 59_999, stateOf(4)],
    ["is replaced by an empty window when it ends", stateOf(4), START + MINUTE, stateOf(0, START + MINUTE)],
    [
      "is replaced by an empty window many windows later",
      stateOf(4),
      START + 10 * MINUTE + 5,
      stateOf(0, START + 10 * MINUTE),
    ],
    ["keeps its count if the clock is set back to the previous window", stateOf(4), START - 1, stateOf(4)],
    [
      "keeps its count if the clock is set back by exactly one window",
      stateOf(4),
      START - MINUTE,
      stateOf(4),
    ],
    [
      "starts earlier if the clock is set back by more than a window",
      stateOf(4),
      START - MINUTE - 1,
      stateOf(4, START - MINUTE),
    ],
    [
      "starts earlier if the clock is set back by hours",
      stateOf(4),
      START - 50 * MINUTE + 9,
      stateOf(4, START - 49 * MINUTE),
    ],
    [
      "is replaced by the previous window if nothing was taken and the clock is set back",
      stateOf(0),
      START - 1,
      stateOf(0, START - MINUTE),
    ],
  ])("%s", (_when, state, nowMs, expected) => {
    expect(fixedWindow.at(state, policyOf(10), nowMs)).toEqual(expected)
  })

  it("keeps the same state object until it ends, because this is the hot path", () => {
    for (const nowMs of [START, START + 59_999]) {
      const state = stateOf(4)
      expect(fixedWindow.at(state, policyOf(10), nowMs)).toBe(state)
    }
  })
})

describe("a window that starts with its first request", () => {
  const policy = policyOf(10, "first-hit")

  it.each([
    ["starts now if nothing was taken yet", undefined, START + 7, stateOf(0, START + 7)],
    ["starts now if everything was refunded", stateOf(0, START + 7), START + 9, stateOf(0, START + 9)],
    ["keeps its count in its last millisecond", stateOf(4, START + 7), START + 60_006, stateOf(4, START + 7)],
    [
      "starts again, without units, at its end",
      stateOf(4, START + 7),
      START + 60_007,
      stateOf(0, START + 60_007),
    ],
    [
      "keeps its count if the clock is set back a little",
      stateOf(4, START + 7),
      START + 6,
      stateOf(4, START + 7),
    ],
    [
      "starts earlier if the clock is set back by hours",
      stateOf(4, START + 7),
      START - 50 * MINUTE,
      stateOf(4, START - 49 * MINUTE),
    ],
  ])("%s", (_when, state, nowMs, expected) => {
    expect(fixedWindow.at(state, policy, nowMs)).toEqual(expected)
  })
})

describe("units charged later to a window that starts with its first request", () => {
  const policy = policyOf(10, "first-hit")
  const nothing = stateOf(0, START + 7)

  it.each([
    [
      "start a window at the request if nothing had been taken",
      stateOf(0, START + 20),
      -5,
      START + 20,
      stateOf(5, START + 7),
    ],
    [
      "count in the window that has started since the request",
      stateOf(4, START + 15),
      -5,
      START + 20,
      stateOf(9, START + 15),
    ],
    ["start a window now if the clock was set back", stateOf(0, START), -5, START, stateOf(5, START)],
    [
      "start a window at the request up to its last millisecond",
      stateOf(0, START + 60_006),
      -5,
      START + 60_006,
      stateOf(5, START + 7),
    ],
    [
      "are ignored if the window of the request has passed",
      stateOf(0, START + 60_007),
      -5,
      START + 60_007,
      stateOf(0, START + 60_007),
    ],
    ["start no window if the charge is 0", stateOf(0, START + 20), 0, START + 20, stateOf(0, START + 20)],
    [
      "start no window if they are refunded instead",
      stateOf(0, START + 20),
      3,
      START + 20,
      stateOf(0, START + 20),
    ],
  ] as const)("%s", (_what, state, units, nowMs, expected) => {
    expect(fixedWindow.withoutUnits(state, policy, units, nothing, nowMs)).toEqual(expected)
  })
})

it("an aligned fixed window ignores units charged to a later window after the clock is set back", () => {
  const state = stateOf(0, START - MINUTE)
  expect(fixedWindow.withoutUnits(state, policyOf(10), -5, stateOf(0), START - 1)).toBe(state)
})
