import { describe, expect, it } from "vitest"
import { soundReading, soundResult } from "./sound-answer.ts"
import { fixedCheck } from "./testing/checks.ts"

const SECOND = 1_000

const NOW_MS = 10 * SECOND
const CHECKS = [fixedCheck("a", 5), fixedCheck("b", 5)]
const counted = (startMs = NOW_MS) => ({ state: { startMs, previous: 0, current: 1 }, taken: 1 })
const FULL = { state: { startMs: NOW_MS, previous: 0, current: 5 }, taken: 0 }
const FREE = { state: { startMs: NOW_MS, previous: 0, current: 0 }, taken: 0 }
const INVALID = expect.objectContaining({ kind: "invalid-answer" })

const WRONG_COUNTERS: [string, unknown][] = [
  ["no state", { taken: 0 }],
  ["a null state", { state: null, taken: 0 }],
  ["a missing count", { state: { startMs: NOW_MS, previous: 0 }, taken: 0 }],
  ["a null check", null],
  ["a window that is over", { ...counted(NOW_MS - SECOND - 1), taken: 0 }],
  ["a window that is too far ahead", { ...counted(NOW_MS + SECOND + 1), taken: 0 }],
  ["no window", { state: { previous: 0, current: 1 }, taken: 0 }],
]

describe("the result of a store", () => {
  const result = (granted: unknown, ...checks: unknown[]) => ({ nowMs: NOW_MS, granted, checks })

  it("is returned if it is valid, even if the clock went back by one window", () => {
    const ahead = result(true, counted(NOW_MS + SECOND), counted())
    for (const valid of [result(true, counted(), counted()), ahead])
      expect(soundResult(CHECKS, valid)).toBe(valid)
  })

  it("may omit counters if it refuses, but not if it grants", () => {
    expect(soundResult(CHECKS, result(false, FULL, undefined))).toMatchObject({ granted: false })
    expect(() => soundResult(CHECKS, result(true, counted(), undefined))).toThrow(INVALID)
  })

  it("must not refuse if the cost fits into every counter that it read", () => {
    expect(() => soundResult(CHECKS, result(false, FREE, FREE))).toThrow(INVALID)
    expect(() => soundResult(CHECKS, result(false, FREE, undefined))).toThrow(INVALID)
  })

  it("must not grant without taking the units of all checks, except shadow checks", () => {
    expect(() => soundResult(CHECKS, result(true, FREE, counted()))).toThrow(INVALID)
    const shadow = [{ ...fixedCheck("a", 5), shadow: true }, fixedCheck("b", 5)]
    expect(soundResult(shadow, result(true, FULL, counted()))).toMatchObject({ granted: true })
  })

  it.each([Number.NaN, -1, 0.5, "1", null])("is invalid with %s as a time, an age or a wait", (wrong) => {
    const valid = result(true, counted(), counted())
    expect(() => soundResult(CHECKS, { ...valid, nowMs: wrong })).toThrow(INVALID)
    expect(() => soundResult(CHECKS, { ...valid, againAfterMs: wrong })).toThrow(INVALID)
    expect(() => soundResult(CHECKS, result(false, { ...FULL, retryAfterMs: wrong }, FREE))).toThrow(INVALID)
    expect(() => soundResult(CHECKS, result(true, { ...counted(), ageMs: wrong }, counted()))).toThrow(
      INVALID,
    )
  })

  it.each([undefined, null, "granted", [], {}])("is invalid if it is %j", (wrong) => {
    expect(() => soundResult(CHECKS, wrong)).toThrow(INVALID)
  })

  it.each<[string, unknown]>([...WRONG_COUNTERS, ["no taken units", { state: counted().state }]])(
    "is invalid with %s, whether it grants or refuses",
    (_case, check) => {
      expect(() => soundResult(CHECKS, result(false, FULL, check))).toThrow(INVALID)
      expect(() => soundResult(CHECKS, result(true, counted(), check))).toThrow(INVALID)
    },
  )
})

describe("the reading of a store", () => {
  it("is returned if it is valid", () => {
    const reading = { nowMs: NOW_MS, counters: [FREE, FULL] }
    expect(soundReading(CHECKS, reading)).toBe(reading)
  })

  it.each<[string, unknown]>([...WRONG_COUNTERS, ["a counter that is left out", undefined]])(
    "is invalid with %s",
    (_case, counter) => {
      expect(() => soundReading(CHECKS, { nowMs: NOW_MS, counters: [FREE, counter] })).toThrow(INVALID)
    },
  )

  it("is invalid with a wrong number of counters, or without a time", () => {
    expect(() => soundReading(CHECKS, { nowMs: NOW_MS, counters: [FREE] })).toThrow(INVALID)
    expect(() => soundReading(CHECKS, { counters: [FREE, FREE] })).toThrow(INVALID)
  })
})
