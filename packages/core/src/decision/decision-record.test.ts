import { describe, expect, it } from "vitest"
import type { PolicyCheck } from "./decision.ts"
import { DecisionRecord, isStricter } from "./decision-record.ts"

const ADMITTED: PolicyCheck = {
  policy: "a",
  unit: "requests",
  algorithm: "sliding-window",
  limit: 5,
  windowMs: 1_000,
  remaining: 3,
  cost: 1,
  allowed: true,
  retryAfterMs: 0,
  nextUnitAfterMs: 0,
  resetAfterMs: 0,
  delayMs: 0,
  overLimit: false,
  shadow: false,
  ageMs: 0,
}
const REFUSED: PolicyCheck = { ...ADMITTED, allowed: false, refusal: "quota", remaining: 0, retryAfterMs: 7 }

const decisionOf = (...checks: PolicyCheck[]) => new DecisionRecord(checks, false, undefined)

describe("a decision", () => {
  it("has the longest delay of its rules, and is over the limit if any rule is over the limit", () => {
    const [late, later] = [100, 300].map((delayMs) => ({ ...ADMITTED, delayMs }))
    const over = { ...ADMITTED, overLimit: true }
    expect(decisionOf(late as PolicyCheck, later as PolicyCheck, over)).toMatchObject({
      delayMs: 300,
      overLimit: true,
    })
    expect(decisionOf(later as PolicyCheck, late as PolicyCheck)).toMatchObject({
      delayMs: 300,
      overLimit: false,
    })
  })

  it("ignores the delay and overLimit of shadow rules, alone or beside other rules", () => {
    const reports = { ...ADMITTED, delayMs: 100, overLimit: true, shadow: true }
    for (const checks of [[reports], [reports, reports], [reports, ADMITTED], [ADMITTED, reports]]) {
      expect(decisionOf(...checks)).toMatchObject({ allowed: true, delayMs: 0, overLimit: false })
    }
  })

  it("has no delay and is not over the limit if it refuses the request", () => {
    const held = { ...ADMITTED, delayMs: 100, overLimit: true }
    expect(decisionOf(held, REFUSED)).toMatchObject({ allowed: false, delayMs: 0, overLimit: false })
  })

  it("has a reason and a message only if the strictest rule has them", () => {
    const keys = (...checks: PolicyCheck[]) => Object.keys(decisionOf(...checks))
    expect(keys(ADMITTED)).not.toContain("refusal")
    expect(keys(ADMITTED)).not.toContain("rejectionMessage")
    expect(keys(REFUSED)).toContain("refusal")
    expect(keys(REFUSED)).not.toContain("rejectionMessage")
    expect(decisionOf({ ...REFUSED, rejectionMessage: "later" }).rejectionMessage).toBe("later")
  })
})

describe("a joined decision", () => {
  it("is the later decision if the earlier decision has no rules", () => {
    const later = decisionOf(REFUSED)
    expect(DecisionRecord.joined(decisionOf(), later, ["a"])).toBe(later)
  })

  it("has the cost of the strictest rule", () => {
    const costing = (policy: string, remaining: number, cost: number): DecisionRecord =>
      new DecisionRecord([{ ...ADMITTED, policy, remaining, cost }], false, {} as never)
    const costOf = (...[one, other]: [DecisionRecord, DecisionRecord]): number =>
      DecisionRecord.joined(one, other, ["a", "b"]).cost
    expect(costOf(costing("a", 3, 2), costing("b", 30, 4))).toBe(2)
    expect(costOf(costing("a", 30, 2), costing("b", 3, 1))).toBe(1)
  })

  it("shows the units of earlier rules as taken, even if the later decision refuses", () => {
    const shadow: PolicyCheck = { ...REFUSED, policy: "s", shadow: true, cost: 4 }
    const later = decisionOf({ ...REFUSED, policy: "b" })
    const { checks, cost } = DecisionRecord.joined(decisionOf(ADMITTED, shadow), later, ["a", "s", "b"])
    expect(checks.map(({ policy, remaining, taken }) => [policy, remaining, taken])).toEqual([
      ["a", 3, 1],
      ["s", 0, undefined],
      ["b", 0, undefined],
    ])
    expect(cost).toBe(0)
  })
})

describe("the strictest rule", () => {
  const admitted = { allowed: true, remaining: 0, cost: 5, retryAfterMs: 0 }
  const refused = { allowed: false, remaining: 3, cost: 5, retryAfterMs: 7 }

  it("is a rule that refuses, even if an admitting rule has no units left", () => {
    expect(isStricter(refused, admitted)).toBe(true)
    expect(isStricter(admitted, refused)).toBe(false)
    expect(isStricter({ ...refused, retryAfterMs: 0 }, admitted)).toBe(true)
  })

  it("is the rule with fewer units left if both rules can admit the same number of further requests", () => {
    // The first check has units for 2.5 more requests, and the second check has units for 2.33. So each check can
    // admit two requests.
    const [five, seven] = [
      { ...admitted, remaining: 5, cost: 2 },
      { ...admitted, remaining: 7, cost: 3 },
    ]
    expect([isStricter(five, seven), isStricter(seven, five)]).toEqual([true, false])
    const three = { ...admitted, remaining: 9, cost: 3 }
    expect([isStricter(five, three), isStricter(three, five)]).toEqual([true, false])
  })

  it("is the rule with the longer wait if two rules refuse", () => {
    const longer = { ...refused, retryAfterMs: 8 }
    expect(isStricter(longer, refused)).toBe(true)
    expect(isStricter(refused, longer)).toBe(false)
  })
})
