import { StoreUnavailableError } from "@sluice/core"
import type { Policy } from "@sluice/core/stores"
import { describe, expect, it } from "vitest"
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
/** A policy of each kind, with the numbers that scripts receive: kind, ceiling, window and detail. */
const KINDS: readonly { readonly policy: Policy; readonly told: readonly (number | number[])[] }[] = [
  { policy: { ...POLICY, algorithm: "in-flight" }, told: [0, 10, 60_000, 0] },
  { policy: POLICY, told: [1, 10, 60_000, 0] },
  { policy: { ...POLICY, extra: 3 }, told: [1, 13, 60_000, 0] },
  { policy: FIXED, told: [2, 10, 60_000, 0] },
  { policy: FIRST_HIT, told: [3, 10, 60_000, 0] },
  { policy: { ...FIXED, periods: [7, 50_000, 60_007] }, told: [4, 10, 60_000, [7, 50_000, 60_007]] },
  { policy: { ...POLICY, algorithm: "token-bucket" }, told: [5, 10, 60_000, 10] },
  { policy: { ...POLICY, algorithm: "token-bucket", burst: 25, extra: 2 }, told: [5, 27, 60_000, 10] },
  { policy: { ...POLICY, algorithm: "token-bucket", limit: 0, burst: 25 }, told: [5, 0, 60_000, 0] },
  { policy: { ...POLICY, algorithm: "leaky-bucket", burst: 4 }, told: [5, 4, 60_000, 10] },
  { policy: { ...POLICY, algorithm: "token-bucket", refill: "continuous" }, told: [5, 10, 60_000, 10] },
  { policy: { ...POLICY, algorithm: "token-bucket", refill: "periodic" }, told: [6, 10, 60_000, 10] },
  { policy: { ...POLICY, buckets: 12 }, told: [7, 10, 60_000, 12] },
  { policy: { ...POLICY, algorithm: "sliding-window-strict", buckets: 60 }, told: [8, 10, 60_000, 60] },
  { policy: { ...POLICY, algorithm: "sliding-log" }, told: [9, 10, 60_000, 0] },
  {
    policy: {
      ...POLICY,
      algorithm: "penalty",
      limit: 3,
      penalty: { refusals: 3, withinMs: 9_000, forMs: [60_000] },
    },
    told: [10, 3, 9_000, [60_000]],
  },
  {
    policy: {
      ...POLICY,
      algorithm: "penalty",
      limit: 3,
      penalty: { refusals: 3, withinMs: 9_000, forMs: [60_000, 90_000] },
    },
    told: [10, 3, 9_000, [60_000, 90_000]],
  },
  { policy: { ...POLICY, countRejected: true }, told: [17, 10, 60_000, 0] },
  { policy: { ...POLICY, algorithm: "sliding-log", countRejected: true }, told: [25, 10, 60_000, 0] },
]
const SERVER_TIME = { nowMs: undefined, untilMs: undefined, isWide: false }

describe("PolicyTable", () => {
  it("writes each distinct policy once, numbered from 1, regardless of name and counter", () => {
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
    expect(policies.input(SERVER_TIME, [])).toBe("[-1,0,0,3,1,10,60000,0,2,10,60000,0,3,10,60000,0]")
  })

  it.each([
    { time: SERVER_TIME, text: "[-1,0,0,0,7,8]" },
    { time: { ...SERVER_TIME, untilMs: 1_700_000_000_000 }, text: "[-1,1700000000000,0,0,7,8]" },
    { time: { ...SERVER_TIME, nowMs: 0, isWide: true }, text: "[0,0,1,0,7,8]" },
  ])("writes the time and the script's other arguments as $text", ({ time, text }) => {
    expect(new PolicyTable().input(time, [7, 8])).toBe(text)
  })

  it("writes the largest counts with all digits, as valid JSON", () => {
    const policies = new PolicyTable()
    policies.numberOf({ ...POLICY, limit: Number.MAX_SAFE_INTEGER })
    const text = policies.input(SERVER_TIME, [Number.MAX_SAFE_INTEGER])
    expect(text).toBe("[-1,0,0,1,1,9007199254740991,60000,0,9007199254740991]")
  })

  it.each(KINDS)("writes the numbers of the policy $policy", ({ policy, told }) => {
    const policies = new PolicyTable()
    policies.numberOf(policy)
    expect(policies.input(SERVER_TIME, [])).toBe(JSON.stringify([-1, 0, 0, 1, ...told]))
  })

  it("checkCountable rejects an algorithm that the scripts do not support", () => {
    const policy = { ...POLICY, algorithm: "guess" as "fixed-window" }
    expect(() => checkCountable({ policy, partition: "ann" })).toThrow(StoreUnavailableError)
    expect(() => checkCountable({ policy, partition: "ann" })).toThrow("does not support the algorithm guess")
    expect(() => checkCountable({ policy: POLICY, partition: "ann" })).not.toThrow()
    for (const { policy } of KINDS) expect(() => checkCountable({ policy, partition: "ann" })).not.toThrow()
  })
})

describe("isSamePolicy", () => {
  it.each<[string, Partial<Policy>, boolean]>([
    ["the same options", {}, true],
    ["another name", { name: "other" }, true],
    ["another counter", { counter: "counter1" }, true],
    ["another limit", { limit: 11 }, false],
    ["another window", { windowMs: 61_000 }, false],
    ["another algorithm", { algorithm: "fixed-window" }, false],
    ["another alignment", { align: "first-hit" }, false],
    ["extra units", { extra: 1 }, false],
    ["sub-windows", { buckets: 12 }, false],
    ["another burst", { burst: 11 }, false],
    ["another refill", { refill: "periodic" }, false],
    ["refusals that count", { countRejected: true }, false],
    ["a penalty", { penalty: { refusals: 3, withinMs: 9_000, forMs: [60_000] } }, false],
  ])("for a policy with %s returns %s", (_, other, expected) => {
    expect([isSamePolicy(POLICY, { ...POLICY, ...other }), isSamePolicy(POLICY, POLICY)]).toEqual([
      expected,
      true,
    ])
  })
})
