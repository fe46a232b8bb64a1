import { describe, expect, it } from "vitest"
import type { Policy } from "../ground/policy.ts"
import type { CounterState } from "./algorithm.ts"
import { algorithmOf } from "./kinds.ts"
import { mostInUse, YEAR_MS } from "./most-in-use.ts"

const NOW_MS = Date.UTC(2024, 0, 1)
const DAY_MS = 86_400_000

/** A policy with ten units per day and room for four. */
function bucket(more: Partial<Policy> = {}): Policy {
  const policy: Policy = {
    name: "",
    counter: "",
    algorithm: "token-bucket",
    align: "epoch",
    limit: 10,
    windowMs: DAY_MS,
  }
  return { ...policy, burst: 4, ...more }
}

const BUCKETS: readonly (readonly [string, Policy])[] = [
  ["token bucket", bucket()],
  ["leaky bucket", bucket({ algorithm: "leaky-bucket" })],
  ["bucket with periodic refill", bucket({ refill: "periodic" })],
]

describe("mostInUse", () => {
  it.each([
    ["the burst plus ten units a day for 366 days", bucket(), 3_664],
    ["the burst, the extra units, and a year's quota", bucket({ extra: 6 }), 3_670],
    ["the burst plus one quota if the window is longer than a year", bucket({ windowMs: 3 * YEAR_MS }), 14],
    ["unlimited under a limit of 0", bucket({ limit: 0 }), Number.MAX_SAFE_INTEGER],
    [
      "limited to numbers that can be counted exactly",
      bucket({ limit: 2 ** 40 }),
      Math.floor(Number.MAX_SAFE_INTEGER / 86_400),
    ],
    ["at least the ceiling", bucket({ limit: 1, burst: 2 ** 45 }), 2 ** 45],
  ])("is %s", (_what, policy, expected) => {
    expect(mostInUse(policy)).toBe(expected)
  })
})

describe.each(BUCKETS)("a %s", (_name, policy) => {
  const { at, withoutUnits, emptyAtMs } = algorithmOf(policy)
  const held = (current: number, previous = 0): CounterState => ({ startMs: NOW_MS, current, previous })

  it("counts as full if it owes more than a year's quota", () => {
    expect(at(held(3_664), policy, NOW_MS)).toMatchObject({ current: 3_664 })
    expect(at(held(3_665), policy, NOW_MS)).toMatchObject({ current: 4, previous: 0 })
    expect(at(held(Number.MAX_SAFE_INTEGER), policy, NOW_MS + DAY_MS)).toMatchObject({ current: 0 })
  })

  it("cannot be charged beyond a year's quota", () => {
    const after = held(4)
    expect(withoutUnits(held(4), policy, -3_660, after, NOW_MS)).toMatchObject({ current: 3_664 })
    const most = withoutUnits(held(4), policy, -9_999, after, NOW_MS)
    expect(most).toMatchObject({ current: 3_664, previous: 0 })
    expect(emptyAtMs(most, policy) - NOW_MS).toBeLessThanOrEqual(YEAR_MS + DAY_MS)
  })
})
