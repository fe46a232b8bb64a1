import { describe, expect, it } from "vitest"
import { manualClock } from "../ground/manual-clock.ts"
import { PERMITS } from "../ground/policy.ts"
import { memoryStore } from "./memory/memory-store.ts"
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
  ["a negative count", { state: { startMs: NOW_MS, previous: -1, current: 1 }, taken: 0 }],
  ["half a unit", { state: { startMs: NOW_MS, previous: 0.5, current: 1 }, taken: 0 }],
  ["parts that are not packed", { state: { ...FREE.state, parts: 5 }, taken: 0 }],
  ["no window", { state: { previous: 0, current: 1 }, taken: 0 }],
]

describe("the result of a store", () => {
  const result = (granted: unknown, ...checks: unknown[]) => ({ nowMs: NOW_MS, granted, checks })

  it("is returned if it is valid, even if the clock went back by one window", () => {
    const ahead = result(true, counted(NOW_MS + SECOND), counted())
    for (const valid of [result(true, counted(), counted()), ahead])
      expect(soundResult(CHECKS, valid)).toBe(valid)
  })

  it("is returned if a window ends now, or if a wait or the state after the request is known", () => {
    const { state } = counted()
    const valid = [
      result(true, counted(NOW_MS - SECOND), counted()),
      result(true, { ...counted(), after: state }, counted()),
      result(false, { ...FULL, retryAfterMs: 5 }, FREE),
      result(false, { ...FULL, retryAfterMs: Number.POSITIVE_INFINITY }, FREE),
    ]
    for (const each of valid) expect(soundResult(CHECKS, each)).toBe(each)
    expect(() => soundResult(CHECKS, result(true, { ...counted(), after: {} }, counted()))).toThrow(INVALID)
  })

  it("may wait forever under a limit of 0, or for a cost above the limit", () => {
    for (const check of [fixedCheck("a", 0), fixedCheck("a", 5, 6)]) {
      const refusal = result(false, FREE)
      expect(soundResult([check], refusal)).toBe(refusal)
    }
  })

  it("has parts if the store's algorithm counts by parts", () => {
    const memory = memoryStore({ clock: manualClock(NOW_MS) })
    const { policy } = fixedCheck("a", 5)
    const strict = [
      { ...fixedCheck("a", 5), policy: { ...policy, algorithm: "sliding-window-strict", buckets: 10 } },
    ] as const
    const taken = memory.take(strict)
    expect(taken.checks[0]?.state.parts).toEqual(expect.any(String))
    expect(soundResult(strict, taken)).toBe(taken)
  })

  it("has a time and a verdict, even without checks", () => {
    const valid = result(true)
    expect(soundResult([], valid)).toBe(valid)
    for (const wrong of [
      { ...valid, nowMs: undefined },
      { ...valid, granted: "yes" },
      { ...valid, checks: [FREE] },
    ])
      expect(() => soundResult([], wrong)).toThrow(INVALID)
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
    const expensive = [{ ...fixedCheck("a", 5, 2), shadow: true }, fixedCheck("b", 5)]
    expect(() => soundResult(expensive, result(true, counted(), counted()))).toThrow(INVALID)
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

describe("the state of a counter of permits", () => {
  const one = fixedCheck(PERMITS, 5)
  const permits = [{ ...one, policy: { ...one.policy, algorithm: "in-flight", extra: 1 } }]
  const at = (startMs: number, previous: number, current: number) => ({
    state: { startMs, previous, current },
    taken: 0,
  })
  const reading = (counter: unknown) => ({ nowMs: NOW_MS, counters: [counter] })

  it.each([
    ["both windows have permits", at(NOW_MS, 2, 3)],
    ["renewals have exceeded the limit", at(NOW_MS, 4, 40)],
    ["the present window ends now", at(NOW_MS - SECOND, 2, 3)],
    ["the clock went back by a window", at(NOW_MS + SECOND, 0, 3)],
  ])("is accepted if %s", (_case, counter) => {
    expect(() => soundReading(permits, reading(counter))).not.toThrow()
    const taken = { nowMs: NOW_MS, granted: true, checks: [{ ...counter, taken: 1 }] }
    expect(soundResult(permits, taken)).toBe(taken)
  })

  it("is accepted in a refusal with a hint or without one, if the permit does not fit", () => {
    for (const wait of [{}, { retryAfterMs: 1_000 }]) {
      const refused = { nowMs: NOW_MS, granted: false, checks: [{ ...at(NOW_MS, 2, 4), ...wait }] }
      expect(soundResult(permits, refused)).toBe(refused)
    }
  })

  it.each([
    ["its permits have ended", at(NOW_MS - SECOND - 1, 5_001, 0)],
    ["a count is negative", at(NOW_MS, -1, 3)],
    ["a count is not whole", at(NOW_MS, 0.5, 3)],
    ["its windows together have more than 2^53 - 1 permits", at(NOW_MS, Number.MAX_SAFE_INTEGER, 1)],
  ])("is invalid if %s", (_case, counter) => {
    expect(() => soundReading(permits, reading(counter))).toThrow(INVALID)
    const refused = { nowMs: NOW_MS, granted: false, checks: [counter] }
    expect(() => soundResult(permits, refused)).toThrow(INVALID)
  })

  it("is invalid in a refusal if the permit fits", () => {
    const refused = { nowMs: NOW_MS, granted: false, checks: [at(NOW_MS, 2, 3)] }
    expect(() => soundResult(permits, refused)).toThrow(INVALID)
  })
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
    const empty = { nowMs: NOW_MS, counters: [] }
    expect(soundReading([], empty)).toBe(empty)
    for (const wrong of [{ counters: [] }, { nowMs: NOW_MS }, { ...empty, counters: [FREE] }])
      expect(() => soundReading([], wrong)).toThrow(INVALID)
  })
})
