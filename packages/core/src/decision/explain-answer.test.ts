import { describe, expect, it } from "vitest"
import { memoryStore } from "../stores/memory/memory-store.ts"
import type { StoreResult } from "../stores/store.ts"
import { explainAnswer } from "./explain-answer.ts"
import { ruleCheck, SECOND } from "./testing/rule-checks.ts"

const NOW_MS = 10 * SECOND
const ASKS = [ruleCheck("a", 5), ruleCheck("b", 5)]
const FULL = { state: { startMs: NOW_MS, previous: 0, current: 5 }, taken: 0 }
const explained = (answer: StoreResult) =>
  explainAnswer(answer, ASKS, ASKS, false, { store: memoryStore() }, undefined)

describe("the decision for a store's result", () => {
  it("has undefined remaining units for a counter that the store did not read", () => {
    const decision = explained({ nowMs: NOW_MS, granted: false, checks: [FULL, undefined] })
    expect([decision.policy, decision.remaining]).toEqual(["a", 0])
    expect(decision.checks.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
      [false, 0],
      [true, undefined],
    ])
  })

  it("contains the age of each count, or 0 if the count was not cached", () => {
    const counted = { state: { startMs: NOW_MS, previous: 0, current: 1 }, taken: 1 }
    const decision = explained({ nowMs: NOW_MS, granted: true, checks: [{ ...counted, ageMs: 7 }, counted] })
    expect(decision.checks.map(({ ageMs }) => ageMs)).toEqual([7, 0])
  })

  it.each([
    [300, 300],
    [3_000, 3_000],
    [undefined, 250],
  ])("with againAfterMs %s contains retryAfterMs %s", (againAfterMs, expected) => {
    const full = { state: { startMs: NOW_MS - 750, previous: 0, current: 5 }, taken: 0 }
    const free = { state: { startMs: NOW_MS - 750, previous: 0, current: 0 }, taken: 0 }
    const answer = { nowMs: NOW_MS, granted: false, checks: [full, free], againAfterMs } as StoreResult
    const { retryAfterMs, checks } = explained(answer)
    expect([retryAfterMs, ...checks.map((one) => one.retryAfterMs)]).toEqual([expected, expected, 0])
  })
})
