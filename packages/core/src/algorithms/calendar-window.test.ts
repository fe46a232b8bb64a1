import { describe, expect, it } from "vitest"
import type { Policy } from "../ground/policy.ts"
import type { CounterState } from "./algorithm.ts"
import { calendarWindow } from "./calendar-window.ts"

const HOUR = 3_600_000
const month = (number: number, day = 1, shiftMs = 0) => Date.UTC(2026, number - 1, day) + shiftMs

/** Returns a rule of 10 units a month, whose months begin on a day, later by `shiftMs`. */
function monthly(day: number, shiftMs = 0): Policy {
  const periods = [4, 5, 6, 7, 8].map((number) => month(number, day, shiftMs))
  const rule = { name: "p", counter: "p", algorithm: "fixed-window", limit: 10, align: "epoch" } as const
  return { ...rule, windowMs: 31 * 24 * HOUR, periods }
}

/** Takes a unit at each time, and returns how many units count afterwards. */
function counts(...times: readonly (readonly [atMs: number, policy: Policy])[]): readonly number[] {
  let state: CounterState | undefined
  return times.map(([atMs, policy]) => {
    state = calendarWindow.withUnits(calendarWindow.at(state, policy, atMs), policy, 1, atMs)
    return state.current
  })
}

describe("a calendar window whose boundaries change", () => {
  it("keeps the units of the current period in the new period that contains its beginning", () => {
    expect(
      counts([month(6, 3), monthly(1)], [month(6, 4), monthly(20)], [month(6, 20), monthly(20)]),
    ).toEqual([1, 2, 1])
  })

  it("clears the units of an earlier period", () => {
    expect(counts([month(6, 3), monthly(1)], [month(6, 16), monthly(15)])).toEqual([1, 1])
  })

  it("is cleared once, however often the anchor changes back and forth", () => {
    const turns = Array.from(
      { length: 6 },
      (_, i) => [month(6, 16 + i), monthly(i % 2 === 0 ? 1 : 15)] as const,
    )
    expect(counts([month(6, 3), monthly(1)], ...turns)).toEqual([1, 2, 1, 2, 3, 4, 5])
  })

  it("is cleared once at each boundary by two processes with different rules of the time zone", () => {
    const [before, after] = [monthly(1), monthly(1, HOUR)]
    const minutes = [10, 20, 30, 40, 70, 80, 90, 100].map((each) => month(6, 1, each * 60_000))
    const turns = minutes.map((atMs, i) => [atMs, i % 2 === 0 ? before : after] as const)
    expect(counts([month(5, 31), before], ...turns)).toEqual([1, 1, 2, 3, 4, 5, 1, 2, 3])
  })

  it("takes back the units of the current period, and no units of an earlier period", () => {
    const { at, withUnits, withoutUnits } = calendarWindow
    const nowMs = month(6, 16)
    const after = withUnits(at(undefined, monthly(1), month(6, 3)), monthly(1), 4, month(6, 3))
    // The period that begins on 20 May contains the beginning of the units' period.
    const later = withUnits(at(undefined, monthly(20), nowMs), monthly(20), 5, nowMs)
    expect(withoutUnits(later, monthly(20), 4, after, nowMs).current).toBe(1)
    const next = withUnits(at(after, monthly(15), nowMs), monthly(15), 5, nowMs)
    expect(withoutUnits(next, monthly(15), 4, after, nowMs)).toEqual(next)
  })
})
