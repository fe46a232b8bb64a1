import { describe, expect, it } from "vitest"
import type { CounterState } from "../algorithms/algorithm.ts"
import { explainCounted, explainUncounted } from "./explain.ts"
import type { RuleCheck } from "./rule-check.ts"
import { ruleCheck } from "./testing/rule-checks.ts"

const SECOND = 1_000

/** The state of a current window, a quarter of a second after it began. */
const NOW_MS = 250
const holding = (current: number): CounterState => ({ startMs: 0, previous: 0, current })

const fixed = (limit: number, cost: number, more: Partial<RuleCheck> = {}): RuleCheck => ({
  ...ruleCheck("a", limit, cost),
  ...more,
})
const leaky = (cost: number): RuleCheck => ruleCheck("l", 10, cost, { algorithm: "leaky-bucket", burst: 10 })

function looked(storeChecks: RuleCheck, state: CounterState) {
  return explainCounted(storeChecks, { state, taken: 0 }, NOW_MS, false)
}

function took(storeChecks: RuleCheck, state: CounterState) {
  return explainCounted(storeChecks, { state, taken: storeChecks.cost }, NOW_MS, true)
}

describe("the explanation of a counted check", () => {
  it("reports no wait for the next unit if no units are in use", () => {
    expect(looked(fixed(5, 2), holding(0))).toMatchObject({ remaining: 5, nextUnitAfterMs: 0 })
    expect(looked(fixed(5, 2), holding(1))).toMatchObject({ remaining: 4, nextUnitAfterMs: 750 })
  })

  it("contains every field except refusal and rejectionMessage if the request is admitted", () => {
    expect(took(fixed(5, 2), holding(3))).toStrictEqual({
      policy: "a",
      unit: "requests",
      algorithm: "fixed-window",
      limit: 5,
      windowMs: SECOND,
      remaining: 2,
      cost: 2,
      allowed: true,
      retryAfterMs: 0,
      nextUnitAfterMs: 750,
      resetAfterMs: 750,
      delayMs: 0,
      overLimit: false,
      shadow: false,
      counts: holding(3),
      ageMs: 0,
    })
  })

  it("contains the reason of a refusal, and the rule's message if it has one", () => {
    const refused = looked(fixed(5, 3), holding(3))
    expect(refused).toMatchObject({ allowed: false, refusal: "quota", retryAfterMs: 750, remaining: 2 })
    expect(Object.keys(refused)).not.toContain("rejectionMessage")
    expect(looked(fixed(5, 3, { rejectionMessage: "later" }), holding(3)).rejectionMessage).toBe("later")
  })

  it("omits the rule's message if the request is admitted", () => {
    const keys = Object.keys(looked(fixed(5, 1, { rejectionMessage: "later" }), holding(3)))
    expect(keys).not.toContain("refusal")
    expect(keys).not.toContain("rejectionMessage")
  })

  it("reports that a cost above the limit can never be admitted", () => {
    expect(looked(fixed(5, 6), holding(0))).toMatchObject({
      refusal: "cost",
      retryAfterMs: Number.POSITIVE_INFINITY,
    })
  })

  it("reports a cost of 0 as admitted and within the limit, however many units are in use", () => {
    // More than the limit can be in use after the limit was lowered, or after a charge.
    expect(looked(fixed(5, 0), holding(9))).toMatchObject({
      allowed: true,
      retryAfterMs: 0,
      overLimit: false,
      remaining: 0,
    })
  })

  it("marks a request that soft throttling admits above the limit, after a take and in a peek", () => {
    const soft = ruleCheck("s", 5, 2, { extra: 5 })
    expect(took(soft, holding(5)).overLimit).toBe(false)
    expect(took(soft, holding(6)).overLimit).toBe(true)
    expect(looked(soft, holding(3)).overLimit).toBe(false)
    expect(looked(soft, holding(4)).overLimit).toBe(true)
    expect(looked({ ...soft, cost: 0 }, holding(7)).overLimit).toBe(false)
  })

  it("does not count the extra units of soft throttling as remaining units", () => {
    const soft = ruleCheck("s", 5, 1, { extra: 5 })
    expect(took(soft, holding(7))).toMatchObject({ remaining: 0, nextUnitAfterMs: 750 })
  })

  it("reports the delay in a leaky bucket, after a take and in a peek", () => {
    // Ten units per second are one unit every tenth of a second.
    const state: CounterState = { startMs: NOW_MS, previous: 0, current: 3 }
    expect(looked(leaky(2), state).delayMs).toBe(300)
    expect(took(leaky(2), { ...state, current: 5 }).delayMs).toBe(300)
  })

  it("reports no delay for a refused request or a request of cost 0", () => {
    const full: CounterState = { startMs: NOW_MS, previous: 0, current: 10 }
    expect(looked(leaky(1), full)).toMatchObject({ allowed: false, delayMs: 0 })
    expect(looked(leaky(0), full)).toMatchObject({ allowed: true, delayMs: 0 })
  })
})

describe("the explanation of a check that was decided without counting", () => {
  const settled = {
    policy: "a",
    unit: "requests",
    algorithm: "fixed-window",
    limit: 5,
    windowMs: SECOND,
    remaining: 0,
    cost: 1,
    nextUnitAfterMs: 0,
    resetAfterMs: 0,
    delayMs: 0,
    overLimit: false,
    shadow: false,
    ageMs: 0,
  }

  it("contains only the verdict if the request is admitted", () => {
    const admitted = explainUncounted(fixed(5, 1, { rejectionMessage: "later" }), undefined, 0)
    expect(admitted).toStrictEqual({ ...settled, allowed: true, retryAfterMs: 0 })
  })

  it("contains the reason of a refusal, and the message and missing field if there are any", () => {
    const refused = { ...settled, allowed: false, retryAfterMs: 7 }
    expect(explainUncounted(fixed(5, 1), "denied", 7)).toStrictEqual({ ...refused, refusal: "denied" })
    expect(
      explainUncounted(fixed(5, 1, { rejectionMessage: "no", field: "user_id" }), "missing-field", 7),
    ).toStrictEqual({ ...refused, refusal: "missing-field", rejectionMessage: "no", field: "user_id" })
  })
})
