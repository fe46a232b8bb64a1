import { describe, expect, it } from "vitest"
import type { CounterState } from "./algorithm.ts"
import { penalty } from "./penalty.ts"
import { policyOf } from "./testing/counter-story.ts"

/** A policy in which three refusals within 10 s block for a minute. */
const POLICY = policyOf({
  algorithm: "penalty",
  limit: 3,
  windowMs: 60_000,
  penalty: { refusals: 3, withinMs: 10_000, forMs: 60_000 },
})
const START_MS = Date.UTC(2024, 0, 1)

/** Returns the state after refusals at these instants, in milliseconds from the start. */
function refusedAt(...instants: readonly number[]): CounterState {
  let state = penalty.at(undefined, POLICY, START_MS)
  for (const ms of instants) {
    const nowMs = START_MS + ms
    state = penalty.withRejected(penalty.at(state, POLICY, nowMs), POLICY, 1, nowMs)
  }
  return state
}

/** Returns how long a request waits at that instant. */
function waitMs(state: CounterState, ms: number): number {
  const nowMs = START_MS + ms
  const now = penalty.at(state, POLICY, nowMs)
  const wait = penalty.retryAfterMs(now, POLICY, 1, nowMs)
  expect(penalty.admits(now, POLICY, 1, nowMs)).toBe(wait === 0)
  expect(penalty.used(now, POLICY, nowMs)).toBe(wait === 0 ? 0 : POLICY.limit)
  expect(penalty.resetAfterMs(now, POLICY, nowMs)).toBe(wait)
  return wait
}

describe("a penalty", () => {
  it.each([
    { refusals: [], ms: 0, wait: 0 },
    { refusals: [0, 0], ms: 0, wait: 0 },
    { refusals: [0, 4_000, 9_999], ms: 9_999, wait: 60_000 },
    { refusals: [0, 4_000, 9_999], ms: 69_998, wait: 1 },
    { refusals: [0, 4_000, 9_999], ms: 69_999, wait: 0 },
    // When the first refusal is forgotten, the others are too. The third refusal begins a new count.
    { refusals: [0, 4_000, 10_000], ms: 10_000, wait: 0 },
    { refusals: [0, 4_000, 10_000, 12_000], ms: 12_000, wait: 0 },
    { refusals: [0, 4_000, 10_000, 12_000, 19_999], ms: 19_999, wait: 60_000 },
    // During a block, refusals change nothing. After the block, the count starts again.
    { refusals: [0, 0, 0, 30_000, 59_999], ms: 59_999, wait: 1 },
    { refusals: [0, 0, 0, 30_000, 59_999], ms: 60_000, wait: 0 },
    { refusals: [0, 0, 0, 60_000, 60_000], ms: 60_000, wait: 0 },
    { refusals: [0, 0, 0, 60_000, 60_000, 60_000], ms: 60_000, wait: 60_000 },
  ])("after refusals at $refusals makes a client wait $wait ms at $ms", ({ refusals, ms, wait }) => {
    expect(waitMs(refusedAt(...refusals), ms)).toBe(wait)
  })

  it("blocks after the first refusal if one is enough", () => {
    const once = { ...POLICY, limit: 1 }
    const state = penalty.withRejected(penalty.at(undefined, once, START_MS), once, 1, START_MS)
    expect(penalty.admits(state, once, 1, START_MS)).toBe(false)
  })

  it("admits a request of cost 0 during a block", () => {
    const state = refusedAt(0, 0, 0)
    expect(penalty.admits(state, POLICY, 0, START_MS)).toBe(true)
    expect(penalty.retryAfterMs(state, POLICY, 0, START_MS)).toBe(0)
  })

  it.each([
    { what: "nothing", state: refusedAt(), ms: 0 },
    { what: "two refusals", state: refusedAt(1_000, 2_000), ms: 11_000 },
    { what: "a block", state: refusedAt(1_000, 2_000, 3_000), ms: 63_000 },
  ])("of $what expires after exactly $ms ms", ({ state, ms }) => {
    const endMs = START_MS + ms
    expect(penalty.emptyAtMs(state, POLICY)).toBe(endMs)
    expect(penalty.at(state, POLICY, endMs)).toEqual({ startMs: endMs, current: 0, previous: 0 })
    if (ms > 0) expect(penalty.at(state, POLICY, endMs - 1)).toBe(state)
  })

  it.each([
    { what: "a block", state: refusedAt(0, 0, 0), lastsMs: 60_000 },
    { what: "a count", state: refusedAt(0, 0), lastsMs: 10_000 },
  ])(
    "moves $what in the future to the present when the clock goes back, and keeps its duration",
    ({ state, lastsMs }) => {
      const backMs = START_MS - 3_600_000
      const back = penalty.at(state, POLICY, backMs)
      expect(back).toEqual({ ...state, startMs: backMs })
      expect(penalty.emptyAtMs(back, POLICY)).toBe(backMs + lastsMs)
    },
  )

  it("starts at the current time if no refusal is counted, and otherwise keeps the same state object", () => {
    expect(penalty.at(refusedAt(), POLICY, START_MS + 5)).toEqual({ ...refusedAt(), startMs: START_MS + 5 })
    const state = refusedAt(0)
    expect(penalty.at(state, POLICY, START_MS)).toBe(state)
  })

  it("ignores admitted and refunded units, and writes nothing during a block", () => {
    for (const state of [refusedAt(0), refusedAt(0, 0, 0)]) {
      expect(penalty.withUnits(state, POLICY, 5, START_MS)).toBe(state)
      expect(penalty.withoutUnits(state, POLICY, 1, state, START_MS)).toBe(state)
    }
    const blocked = refusedAt(0, 0, 0)
    expect(penalty.withRejected(blocked, POLICY, 1, START_MS)).toBe(blocked)
  })
})
