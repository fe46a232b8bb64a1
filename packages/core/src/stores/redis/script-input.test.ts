import { describe, expect, it } from "vitest"
import { StoreUnavailableError } from "../../errors.ts"
import type { Policy } from "../../policy.ts"
import { checkCountable, isSamePolicy, PolicyTable } from "./script-input.ts"

const POLICY: Policy = {
  name: "login",
  counter: "counter0",
  algorithm: "sliding-window",
  limit: 10,
  windowMs: 60_000,
  align: "epoch",
}
const FIXED: Policy = { ...POLICY, algorithm: "fixed-window" }
const FIRST_HIT: Policy = { ...FIXED, align: "first-hit" }
const SERVER_TIME = { nowMs: undefined, untilMs: undefined, isWide: false }

describe("PolicyTable", () => {
  it("sends each policy once, numbered from 1, whatever it is called and whichever its counter is", () => {
    const policies = new PolicyTable()
    const numbers = [
      POLICY,
      FIXED,
      POLICY,
      { ...POLICY, name: "other", counter: "counter1" },
      FIRST_HIT,
      FIXED,
    ].map((policy) => policies.numberOf(policy))
    expect(numbers).toEqual([1, 2, 1, 1, 3, 2])
    expect(policies.input(SERVER_TIME, [])).toBe("[-1,0,0,3,1,10,60000,2,10,60000,3,10,60000]")
  })

  it.each([
    { time: SERVER_TIME, text: "[-1,0,0,0,7,8]" },
    { time: { ...SERVER_TIME, untilMs: 1_700_000_000_000 }, text: "[-1,1700000000000,0,0,7,8]" },
    { time: { ...SERVER_TIME, nowMs: 0, isWide: true }, text: "[0,0,1,0,7,8]" },
  ])("writes the time and the rest as $text", ({ time, text }) => {
    expect(new PolicyTable().input(time, [7, 8])).toBe(text)
  })

  it("writes the largest counts in full, as JSON reads them", () => {
    const policies = new PolicyTable()
    policies.numberOf({ ...POLICY, limit: Number.MAX_SAFE_INTEGER })
    const text = policies.input(SERVER_TIME, [Number.MAX_SAFE_INTEGER])
    expect(text).toBe("[-1,0,0,1,1,9007199254740991,60000,9007199254740991]")
  })

  it("refuses an algorithm that the scripts do not know", () => {
    const policy = { ...POLICY, algorithm: "token-bucket" as "fixed-window" }
    expect(() => checkCountable(policy)).toThrow(StoreUnavailableError)
    expect(() => checkCountable(policy)).toThrow("does not count by token-bucket")
    expect(() => checkCountable(POLICY)).not.toThrow()
    expect(() => checkCountable({ ...POLICY, algorithm: "sliding-window" })).not.toThrow()
  })
})

describe("isSamePolicy", () => {
  it.each<[string, Partial<Policy>, boolean]>([
    ["the same", {}, true],
    ["another name", { name: "other" }, true],
    ["another counter", { counter: "counter1" }, true],
    ["another limit", { limit: 11 }, false],
    ["another window", { windowMs: 61_000 }, false],
    ["another algorithm", { algorithm: "fixed-window" }, false],
    ["another alignment", { align: "first-hit" }, false],
  ])("of %s is %s", (_, other, expected) => {
    expect([isSamePolicy(POLICY, { ...POLICY, ...other }), isSamePolicy(POLICY, POLICY)]).toEqual([
      expected,
      true,
    ])
  })
})
