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
