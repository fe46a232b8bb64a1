import { describe, expect, it } from "vitest"
import { memoryStore } from "../stores/memory/memory-store.ts"
import type { Receipt } from "./decision-record.ts"
import type { RuleCheck } from "./rule-check.ts"
import { mostCharged, refundsOf, settlementOf, type UsedUnits } from "./settlement.ts"
import { ruleCheck } from "./testing/rule-checks.ts"

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** Returns the receipt of a decision whose checks the store has granted. */
async function receiptOf(...ruleChecks: readonly RuleCheck[]): Promise<Receipt> {
  const store = memoryStore()
  const answer = await store.take(ruleChecks)
  if (answer === undefined) throw new Error("no answer")
  return { by: { store }, store, ruleChecks, answer }
}

const requests = (used: number): UsedUnits => new Map([["requests", used]])

describe("the correction of a decision", () => {
  it("refunds each rule that took units", async () => {
    const receipt = await receiptOf(ruleCheck("a", 5, 2), ruleCheck("b", 5, 0))
    expect(refundsOf(receipt).map(({ policy, units }) => [policy.name, units])).toEqual([["a", 2]])
  })

  it("refunds the unused units, or charges units that were used beyond the taken units", async () => {
    const receipt = await receiptOf(ruleCheck("a", 5, 3))
    // Under this rule, each unit costs three.
    expect(settlementOf(receipt, requests(0)).map(({ units }) => units)).toEqual([3])
    expect(settlementOf(receipt, requests(1))).toEqual([])
    expect(settlementOf(receipt, requests(2)).map(({ units }) => units)).toEqual([-3])
  })
})

describe("the largest single charge", () => {
  it("is the rule's quota of a year", () => {
    expect(mostCharged(ruleCheck("a", 10, 1, { windowMs: DAY_MS }).policy)).toBe(10 * 366)
  })

  it.each([1, 1_000, 60_000, HOUR_MS, DAY_MS, 365 * DAY_MS])(
    "can be counted exactly in windows of %i ms",
    (windowMs) => {
      const most = mostCharged(ruleCheck("a", 2 ** 40, 1, { windowMs }).policy)
      expect(Number.isSafeInteger(most)).toBe(true)
      expect(most).toBeGreaterThan(0)
      expect(most * Math.max(1_000, Math.ceil(windowMs / 1_000))).toBeLessThanOrEqual(Number.MAX_SAFE_INTEGER)
    },
  )
})
