import { describe, expect, it } from "vitest"
import { slidingLog } from "./sliding-log.ts"
import { Counter, expectLedger, policyOf } from "./testing/counter-story.ts"

const NEVER = Number.POSITIVE_INFINITY
const POLICY = policyOf({ algorithm: "sliding-log", limit: 3, windowMs: 1_000 })

describe("the sliding log", () => {
  it("counts the units of the past window, including both ends", () => {
    expectLedger(POLICY, [
      [0, 1, 0, 2],
      [300, 1, 0, 1],
      [400, 1, 0, 0],
      [400, 4, NEVER, 0],
      [400, 0, 0, 0],
      [1_000, 1, 1, 0],
      [1_001, 1, 0, 0],
      [1_300, 1, 1, 0],
      [1_301, 2, 100, 1],
      [1_301, 1, 0, 0],
      [1_401, 1, 0, 0],
      [9_000, 3, 0, 0],
    ])
  })

  it("adds units of the same millisecond to the latest entry, and widens all entries if necessary", () => {
    const counter = new Counter({ ...POLICY, limit: 200 })
    const parts = [
      [64, 1],
      [65, 62],
      [65, 1],
      [65, 1],
      [66, 1],
    ].map(([atMs, units]) => counter.charge(atMs as number, units as number).parts)
    expect(parts).toEqual([
      "1101",
      "1101" + "11n",
      "1101" + "11o",
      "21001" + "1110",
      "21001" + "1110" + "1201",
    ])
    // The number of digits does not decrease while the log contains entries.
    expect([counter.look(1_066).parts, counter.look(1_067).parts]).toEqual(["21201", ""])
  })

  it("drops the oldest units when refusals count, even part of an entry", () => {
    const counter = new Counter({ ...POLICY, countRejected: true })
    for (const [atMs, units] of [
      [64, 2],
      [65, 1],
    ] as const)
      counter.take(atMs, units)
    const parts = [
      [66, 1],
      [66, 1],
      [66, 1],
      [67, 3],
    ].map(([atMs, units]) => {
      expect(counter.take(atMs as number, units as number)).toBe(false)
      return counter.state?.parts
    })
    expect(parts).toEqual(["1101" + "111" + "121", "1111" + "122", "1123", "1133"])
  })

  it("drops several old entries if necessary, and keeps its total above a lowered limit", () => {
    const counter = new Counter({ ...POLICY, countRejected: true })
    for (const atMs of [64, 65, 66]) counter.take(atMs, 1)
    expect(counter.take(67, 2)).toBe(false)
    expect(counter.state).toEqual({ startMs: 67, current: 3, previous: 0, parts: "1" + "121" + "132" })
    const cut = new Counter({ ...POLICY, limit: 1, countRejected: true })
    cut.state = counter.state
    expect(cut.take(68, 1)).toBe(false)
    expect(cut.copy().take(68, 0)).toBe(true)
    expect(cut.state).toEqual({ startMs: 68, current: 3, previous: 0, parts: "1" + "132" + "141" })
  })

  it("keeps the same state object until its oldest entry expires, because that is the hot path", () => {
    const state = new Counter(POLICY).charge(100, 2)
    for (const atMs of [100, 101, 1_100]) expect(slidingLog.at(state, POLICY, atMs)).toBe(state)
  })

  it("after the clock is set back, charges a future take at the current time and does not refund it", () => {
    const counter = new Counter(POLICY)
    const taken = counter.charge(5_000, 2)
    const state = counter.look(4_000)
    for (const units of [0, 1])
      expect(slidingLog.withoutUnits(state, POLICY, units, taken, 4_000)).toBe(state)
    counter.refund(4_000, -1, taken)
    expect(counter.state?.startMs).toBe(4_000)
    expectUsed(counter, [
      [4_000, 3],
      [5_000, 3],
      [5_001, 0],
    ])
  })

  it("charges units to a past instant until it leaves the window, and ignores them afterwards", () => {
    const state = new Counter(POLICY).charge(900, 1)
    const nothing = { startMs: 100, current: 0, previous: 0 }
    expect(slidingLog.withoutUnits(state, POLICY, -2, nothing, 1_100)).toEqual({
      startMs: 900,
      current: 3,
      previous: 0,
      parts: "1" + "1T2" + ">41",
    })
    expect(slidingLog.withoutUnits(state, POLICY, -2, nothing, 1_101)).toBe(state)
    expect(slidingLog.withoutUnits(state, POLICY, 2, nothing, 1_100)).toBe(state)
    expect(slidingLog.withoutUnits(state, POLICY, 0, nothing, 1_100)).toBe(state)
  })

  it("refunds no units if none were taken, even at an instant whose digits are all 0", () => {
    const counter = new Counter(POLICY)
    counter.charge(4_000, 1)
    const nothing = counter.charge(4_096, 0)
    expect(slidingLog.withoutUnits(nothing, POLICY, 1, nothing, 4_100)).toBe(nothing)
  })

  it("equals an empty log after all units are refunded or have expired", () => {
    const counter = new Counter(POLICY)
    const taken = counter.charge(100, 2)
    counter.refund(150, 2, taken)
    expect(counter.state).toEqual(slidingLog.at(undefined, POLICY, 150))
    counter.charge(200, 1)
    expect(counter.look(1_201)).toEqual(slidingLog.at(undefined, POLICY, 1_201))
  })

  it("is empty again one window and one millisecond after its latest entry", () => {
    const counter = new Counter(POLICY)
    const { algorithm } = counter
    const ends = () => {
      const state = counter.look(500)
      return [algorithm.resetAfterMs(state, POLICY, 500), algorithm.emptyAtMs(state, POLICY)]
    }
    expect(ends()).toEqual([0, 500])
    counter.charge(500, 0)
    expect(ends()).toEqual([0, 500])
    counter.charge(400, 1)
    expect(ends()).toEqual([901, 1_401])
    counter.charge(500, 1)
    expect(ends()).toEqual([1_001, 1_501])
    // A stored count without entries expires a window after its start.
    expect(algorithm.emptyAtMs({ startMs: 400, current: 1, previous: 0 }, POLICY)).toBe(1_401)
  })

  it("stores a burst of a million units, and treats a stored count without entries as empty", () => {
    const policy = { ...POLICY, limit: 1_000_000 }
    expectLedger(policy, [
      [0, 1_000_000, 0, 0],
      [1_000, 1, 1, 0],
      [1_001, 1_000_000, 0, 0],
    ])
    const state = { startMs: 5, current: 3, previous: 0, parts: "" }
    expect(slidingLog.at(state, policy, 6)).toEqual({ startMs: 6, current: 0, previous: 0, parts: "" })
  })
})

function expectUsed(counter: Counter, rows: readonly (readonly [atMs: number, used: number])[]): void {
  expect(rows.map(([atMs]) => [atMs, counter.used(atMs)])).toEqual(rows)
}
