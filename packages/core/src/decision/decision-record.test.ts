import { describe, expect, it } from "vitest"
import type { PolicyCheck } from "./decision.ts"
import { DecisionRecord, isStricter } from "./decision-record.ts"

const ADMITTED: PolicyCheck = {
  policy: "a",
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
}
const REFUSED: PolicyCheck = { ...ADMITTED, allowed: false, refusal: "quota", remaining: 0, retryAfterMs: 7 }

const decisionOf = (...checks: PolicyCheck[]) => new DecisionRecord(checks, false, undefined)

describe("a decision", () => {
  it("is held as long as the longest of its rules says, and over the limit where one of them is", () => {
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

  it("is neither held nor over the limit by a rule that only reports, be it alone or beside another", () => {
    const reports = { ...ADMITTED, delayMs: 100, overLimit: true, shadow: true }
    for (const checks of [[reports], [reports, reports], [reports, ADMITTED], [ADMITTED, reports]]) {
      expect(decisionOf(...checks)).toMatchObject({ allowed: true, delayMs: 0, overLimit: false })
    }
  })

  it("that is refused is neither held nor over the limit, whatever other rules say of it", () => {
    const held = { ...ADMITTED, delayMs: 100, overLimit: true }
    expect(decisionOf(held, REFUSED)).toMatchObject({ allowed: false, delayMs: 0, overLimit: false })
  })

  it("has a reason and a message only where the rule that binds has one", () => {
    const keys = (...checks: PolicyCheck[]) => Object.keys(decisionOf(...checks))
    expect(keys(ADMITTED)).not.toContain("refusal")
    expect(keys(ADMITTED)).not.toContain("rejectionMessage")
    expect(keys(REFUSED)).toContain("refusal")
    expect(keys(REFUSED)).not.toContain("rejectionMessage")
    expect(decisionOf({ ...REFUSED, rejectionMessage: "later" }).rejectionMessage).toBe("later")
  })
})

describe("a joined decision", () => {
  const earlier = decisionOf(ADMITTED)

  it("is the later decision if the earlier one has no rules", () => {
    const later = decisionOf(REFUSED)
    expect(DecisionRecord.joined(decisionOf(), later, ["a"])).toBe(later)
  })

  it("has the cost of the rule that binds", () => {
    const costing = (policy: string, remaining: number, cost: number): DecisionRecord =>
      new DecisionRecord([{ ...ADMITTED, policy, remaining, cost }], false, {} as never)
    const costOf = (...[one, other]: [DecisionRecord, DecisionRecord]): number =>
      DecisionRecord.joined(one, other, ["a", "b"]).cost
    expect(costOf(costing("a", 3, 2), costing("b", 30, 4))).toBe(2)
    expect(costOf(costing("a", 30, 2), costing("b", 3, 1))).toBe(1)
  })

  it("that is refused gives back the units of earlier rules, but not of shadow rules that took none", () => {
    const shadow: PolicyCheck = { ...REFUSED, policy: "s", shadow: true, cost: 4 }
    const later = decisionOf({ ...REFUSED, policy: "b" })
    const { checks, cost } = DecisionRecord.joined(decisionOf(ADMITTED, shadow), later, ["a", "s", "b"])
    expect(checks.map(({ policy, remaining }) => [policy, remaining])).toEqual([
      ["a", 4],
      ["s", 0],
      ["b", 0],
    ])
    expect(cost).toBe(0)
    expect(earlier.checks[0]?.remaining).toBe(3)
  })
})

describe("what binds", () => {
  const admitted = { allowed: true, remaining: 0, cost: 5, retryAfterMs: 0 }
  const refused = { allowed: false, remaining: 3, cost: 5, retryAfterMs: 7 }

  it("is a refusal, however little an admission leaves", () => {
    expect(isStricter(refused, admitted)).toBe(true)
    expect(isStricter(admitted, refused)).toBe(false)
    expect(isStricter({ ...refused, retryAfterMs: 0 }, admitted)).toBe(true)
  })

  it("is, of rules that fit as many requests like this one, the one with fewer units left", () => {
    // Two and a half more requests fit the one and two and a third fit the other: two each.
    const [five, seven] = [
      { ...admitted, remaining: 5, cost: 2 },
      { ...admitted, remaining: 7, cost: 3 },
    ]
    expect([isStricter(five, seven), isStricter(seven, five)]).toEqual([true, false])
    const three = { ...admitted, remaining: 9, cost: 3 }
    expect([isStricter(five, three), isStricter(three, five)]).toEqual([true, false])
  })

  it("is the longer wait of two refusals", () => {
    const longer = { ...refused, retryAfterMs: 8 }
    expect(isStricter(longer, refused)).toBe(true)
    expect(isStricter(refused, longer)).toBe(false)
  })
})
