import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { CounterState } from "./algorithm.ts"
import { inFlight } from "./in-flight.ts"
import { Counter, policyOf } from "./testing/counter-story.ts"

const POLICY = policyOf({ algorithm: "in-flight", limit: 3, windowMs: 1_000 })
const at = (startMs: number, previous: number, current: number): CounterState => ({
  startMs,
  previous,
  current,
})

describe("a counter of permits", () => {
  it("counts the present and the previous window in full, and forgets older permits", () => {
    const counter = new Counter(POLICY)
    expect([counter.take(5_999, 2), counter.take(6_000, 1), counter.take(6_999, 1)]).toEqual([
      true,
      true,
      false,
    ])
    expect([counter.used(6_999), counter.used(7_000), counter.used(7_999), counter.used(8_000)]).toEqual([
      3, 1, 1, 0,
    ])
  })

  it("gives a hint instead of an exact wait, and never admits more permits than the limit", () => {
    const counter = new Counter(POLICY)
    expect(counter.waitMs(5_000, 3)).toBe(0)
    counter.take(5_000, 3)
    expect([counter.waitMs(5_000, 1), counter.waitMs(5_000, 0)]).toEqual([1_000, 0])
    expect(counter.waitMs(5_000, 4)).toBe(Number.POSITIVE_INFINITY)
  })

  it("admits extra permits up to the ceiling", () => {
    const counter = new Counter({ ...POLICY, extra: 2 })
    expect([counter.take(5_000, 5), counter.take(5_000, 1)]).toEqual([true, false])
  })

  it("is empty two windows after its latest permit, or one window after its previous one", () => {
    expect(inFlight.resetAfterMs(at(5_000, 1, 1), POLICY, 5_400)).toBe(1_600)
    expect(inFlight.resetAfterMs(at(5_000, 1, 0), POLICY, 5_400)).toBe(600)
    expect(inFlight.resetAfterMs(at(5_000, 0, 0), POLICY, 5_400)).toBe(0)
  })

  it("does not count refusals", () => {
    const state = at(5_000, 1, 2)
    expect(inFlight.withRejected(state, POLICY, 1, 5_000)).toBe(state)
  })
})

describe("a release", () => {
  const released = (units: number, afterMs: number): CounterState =>
    inFlight.withoutUnits(at(5_000, 2, 3), POLICY, units, at(afterMs, 0, 0), 5_400)

  it("removes permits from the window in which they were last counted, but never below 0", () => {
    expect(released(1, 5_000)).toEqual(at(5_000, 2, 2))
    expect(released(1, 4_000)).toEqual(at(5_000, 1, 3))
    expect([released(9, 5_000), released(9, 4_000)]).toEqual([at(5_000, 2, 0), at(5_000, 0, 3)])
  })

  it("of ended permits changes nothing", () => {
    const state = at(5_000, 2, 3)
    expect(inFlight.withoutUnits(state, POLICY, 1, at(3_000, 0, 0), 5_400)).toBe(state)
  })

  it("applies to the latest window after the clock has gone back", () => {
    const counter = new Counter(POLICY)
    counter.take(5_000, 1)
    const after = counter.charge(6_000, 1)
    expect(counter.used(2_500)).toBe(2)
    counter.refund(2_500, 1, after)
    expect(counter.look(2_500)).toEqual(at(3_000, 0, 1))
  })
})

describe("a clock that goes back", () => {
  it("by less than a window does not end permits earlier, even if the counter is read then", () => {
    const counter = new Counter(POLICY)
    counter.take(5_998, 1)
    const after = counter.charge(6_001, 1)
    expect(counter.take(5_999, 1)).toBe(true)
    expect(counter.look(5_999)).toEqual(at(6_000, 1, 2))
    expect([counter.used(6_999), counter.used(7_999), counter.used(8_000)]).toEqual([3, 2, 0])
    expect(after).toEqual(at(6_000, 1, 1))
  })
})

describe("a renewal", () => {
  const renewed = (units: number, afterMs: number): CounterState =>
    inFlight.withoutUnits(at(5_000, 2, 1), POLICY, -units, at(afterMs, 0, 0), 5_400)

  it("moves permits from their window to the current one", () => {
    expect(renewed(1, 4_000)).toEqual(at(5_000, 1, 2))
    expect(renewed(1, 5_000)).toEqual(at(5_000, 2, 1))
  })

  it("adds missing permits, even above the limit", () => {
    expect(renewed(4, 4_000)).toEqual(at(5_000, 0, 5))
    expect(renewed(4, 5_000)).toEqual(at(5_000, 2, 4))
    expect(renewed(4, 3_000)).toEqual(at(5_000, 2, 5))
  })

  it("followed by the release of the same permits leaves the permits of others", () => {
    fc.assert(
      fc.property(fc.nat(9), fc.nat(9), fc.integer({ min: 1, max: 9 }), (previous, current, own) => {
        const before = at(5_000, previous + own, current)
        const there = inFlight.withoutUnits(before, POLICY, -own, at(4_000, 0, 0), 5_400)
        expect(inFlight.withoutUnits(there, POLICY, own, there, 5_400)).toEqual(at(5_000, previous, current))
      }),
    )
  })
})
