import { describe, expect, it } from "vitest"
import type { CounterState } from "../algorithms/algorithm.ts"
import type { Policy } from "../ground/policy.ts"
import { explainUncounted } from "./explain.ts"
import { separatePenalties, underPenalty, withPenalties } from "./penalties.ts"
import { ruleCheck, SECOND } from "./testing/rule-checks.ts"

const PENALTY: Policy = {
  ...ruleCheck("block", 1).policy,
  algorithm: "penalty",
  penalty: { refusals: 1, withinMs: SECOND, forMs: [2 * SECOND] },
  windowMs: 2 * SECOND,
}
const storeChecks = { ...ruleCheck("a", 5), penalty: PENALTY }

describe("the penalties of a result", () => {
  it("are unknown if the store skipped them because another rule had refused", () => {
    const all = withPenalties([storeChecks, ruleCheck("b", 5)])
    expect(all.map(({ policy }) => policy.name)).toEqual(["a", "block", "b"])
    const answer = { nowMs: 0, granted: false, checks: [undefined, undefined, undefined] }
    expect(separatePenalties(all, answer)).toMatchObject({
      storeChecks: [{ policy: { name: "a" } }, { policy: { name: "b" } }],
      answer: { checks: [undefined, undefined] },
      penalties: [undefined],
    })
  })
})

describe("a check during a block", () => {
  const blocked: CounterState = { startMs: 0, previous: 1, current: 1 }

  it("has a message only if the rule has one", () => {
    const check = explainUncounted(storeChecks, undefined, 0)
    const told = underPenalty(check, storeChecks, blocked, 1)
    expect(told).toMatchObject({ allowed: false, refusal: "penalty" })
    expect(Object.keys(told)).not.toContain("rejectionMessage")
    expect(underPenalty(check, { ...storeChecks, rejectionMessage: "later" }, blocked, 1)).toMatchObject({
      rejectionMessage: "later",
    })
  })

  it.each([
    ["has units left", 2, 5 * SECOND, 2 * SECOND],
    ["gets no unit before the block ends", 0, 5 * SECOND, 5 * SECOND],
    ["gets a unit before the block ends", 0, SECOND, 2 * SECOND],
  ])("reports when the next unit is available if the rule %s", (_where, remaining, nextUnitAfterMs, told) => {
    const check = { ...explainUncounted(storeChecks, undefined, 0), remaining, nextUnitAfterMs }
    expect(underPenalty(check, storeChecks, blocked, 0)).toMatchObject({
      remaining: 0,
      nextUnitAfterMs: told,
    })
  })
})
