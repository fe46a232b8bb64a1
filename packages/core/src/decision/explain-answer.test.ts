import { describe, expect, it } from "vitest"
import { memoryStore } from "../stores/memory/memory-store.ts"
import type { StoreResult } from "../stores/store.ts"
import { explainAnswer, isSound } from "./explain-answer.ts"
import { ruleCheck, SECOND } from "./testing/rule-checks.ts"

const NOW_MS = 10 * SECOND
const ASKS = [ruleCheck("a", 5), ruleCheck("b", 5)]
const counted = (startMs = NOW_MS) => ({ state: { startMs, previous: 0, current: 1 }, taken: 1 })

function verdictOn(answer: unknown): boolean | undefined {
  const told = answer as StoreResult
  return isSound(told, ASKS)
    ? explainAnswer(told, ASKS, ASKS, false, { store: memoryStore() }, undefined)?.allowed
    : undefined
}

describe("the answer of a store", () => {
  it("becomes a decision if it is valid, even if the clock went back by one window", () => {
    expect(verdictOn({ nowMs: NOW_MS, granted: true, checks: [counted(), counted()] })).toBe(true)
    const ahead = { nowMs: NOW_MS, granted: true, checks: [counted(NOW_MS + SECOND), counted()] }
    expect(verdictOn(ahead)).toBe(true)
  })

  it("may omit counters if it refuses, but not if it grants", () => {
    const full = { state: { startMs: NOW_MS, previous: 0, current: 5 }, taken: 0 }
    expect(verdictOn({ nowMs: NOW_MS, granted: false, checks: [full, undefined] })).toBe(false)
    expect(verdictOn({ nowMs: NOW_MS, granted: true, checks: [counted(), undefined] })).toBeUndefined()
  })

  it("leaves the remaining units undefined for a counter that was not read", () => {
    const full = { state: { startMs: NOW_MS, previous: 0, current: 5 }, taken: 0 }
    const answer = { nowMs: NOW_MS, granted: false, checks: [full, undefined] }
    const decision = explainAnswer(answer, ASKS, ASKS, false, { store: memoryStore() }, undefined)
    expect([decision?.policy, decision?.remaining]).toEqual(["a", 0])
    expect(decision?.checks.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
      [false, 0],
      [true, undefined],
    ])
  })

  it("tells how old each count is: 0 if the store was asked", () => {
    const checks = [{ ...counted(), ageMs: 7 }, counted()]
    const decision = explainAnswer(
      { nowMs: NOW_MS, granted: true, checks },
      ASKS,
      ASKS,
      false,
      { store: memoryStore() },
      undefined,
    )
    expect(decision?.checks.map(({ ageMs }) => ageMs)).toEqual([7, 0])
  })

  it.each([
    [300, 300],
    [3_000, 3_000],
    [undefined, 250],
  ])("makes a refused request wait until the store is asked again: %s", (againAfterMs, expected) => {
    const full = { state: { startMs: NOW_MS - 750, previous: 0, current: 5 }, taken: 0 }
    const free = { state: { startMs: NOW_MS - 750, previous: 0, current: 0 }, taken: 0 }
    const answer = { nowMs: NOW_MS, granted: false, checks: [full, free], againAfterMs } as StoreResult
    const decision = explainAnswer(answer, ASKS, ASKS, false, { store: memoryStore() }, undefined)
    expect([decision?.retryAfterMs, ...(decision?.checks.map((one) => one.retryAfterMs) ?? [])]).toEqual([
      expected,
      expected,
      0,
    ])
  })

  it.each([Number.NaN, -1, 0.5, "1", null])("is invalid with %s as an age or as a wait", (wrong) => {
    const answer = { nowMs: NOW_MS, granted: true, checks: [counted(), counted()] }
    expect(verdictOn({ ...answer, checks: [{ ...counted(), ageMs: wrong }, counted()] })).toBeUndefined()
    expect(verdictOn({ ...answer, againAfterMs: wrong })).toBeUndefined()
  })

  it.each([
    ["no state", { taken: 0 }],
    ["a null state", { state: null, taken: 0 }],
    ["a missing count", { state: { startMs: NOW_MS, previous: 0 }, taken: 0 }],
    ["no taken units", { state: counted().state }],
    ["a null check", null],
    ["a window that is over", { ...counted(NOW_MS - SECOND - 1), taken: 0 }],
    ["a window that is too far ahead", { ...counted(NOW_MS + SECOND + 1), taken: 0 }],
    ["no window", { state: { previous: 0, current: 1 }, taken: 0 }],
  ])("is invalid with %s, whether it grants or refuses", (_case, check) => {
    const full = { state: { startMs: NOW_MS, previous: 0, current: 5 }, taken: 0 }
    expect(verdictOn({ nowMs: NOW_MS, granted: false, checks: [full, check] })).toBeUndefined()
    expect(verdictOn({ nowMs: NOW_MS, granted: true, checks: [counted(), check] })).toBeUndefined()
  })
})
