import { describe, expect, it } from "vitest"
import { START_MS } from "./counter.ts"
import { ExactLog } from "./exact-log.ts"
import { admittedByLog, judge } from "./judge.ts"
import { kindOf, policyOf } from "./kinds.ts"
import { bursty, edge, onOff, poisson } from "./traffic.ts"

describe("generated traffic", () => {
  it.each([
    ["poisson", poisson],
    ["bursty", bursty],
    ["on/off", onOff],
    ["edge", edge],
  ])(
    "of kind %s is sorted by time, has the requested rate, and is the same for the same seed",
    (_name, make) => {
      const times = make(50, 1_000, 400, 3)
      expect(times.length / 400).toBeGreaterThan(45)
      expect(times.length / 400).toBeLessThan(55)
      expect(times).toEqual(times.toSorted())
      expect(times.every((atMs) => Number.isInteger(atMs) && atMs >= 0)).toBe(true)
      expect(make(50, 1_000, 400, 3)).toEqual(times)
      expect(make(50, 1_000, 400, 5)).not.toEqual(times)
    },
  )

  it("of kind edge occurs only just before and just after a window boundary", () => {
    for (const atMs of edge(50, 1_000, 20, 3)) expect((atMs + 12) % 1_000).toBeLessThanOrEqual(22)
  })

  it("of kind poisson has counts per window whose variance equals their mean", () => {
    const counts = new Array<number>(2_000).fill(0)
    for (const atMs of poisson(50, 1_000, counts.length, 3)) {
      const window = Math.floor(atMs / 1_000)
      counts[window] = (counts[window] as number) + 1
    }
    const variance = counts.reduce((sum, count) => sum + (count - 50) ** 2, 0) / counts.length
    expect(variance / 50).toBeGreaterThan(0.9)
    expect(variance / 50).toBeLessThan(1.1)
  })
})

describe("the exact log", () => {
  it("counts the requests of the past window, including those at both ends", () => {
    const log = new ExactLog(1_000, 3)
    for (const atMs of [0, 10, 500]) log.add(atMs)
    expect([500, 1_000, 1_001, 1_010, 1_011, 1_500, 1_501].map((atMs) => log.count(atMs))).toEqual([
      3, 3, 2, 2, 1, 1, 0,
    ])
  })

  it("throws when full", () => {
    const log = new ExactLog(1_000, 1)
    log.add(0)
    expect(() => log.add(1_000)).toThrow("full")
  })

  it("admits requests up to the limit in any window", () => {
    expect(admittedByLog(2, 1_000, Float64Array.of(0, 1, 2, 1_000, 1_001, 1_002, 1_003))).toBe(4)
  })
})

describe("judge()", () => {
  const at = (...times: number[]) => Float64Array.from(times)
  const size = { limit: 2, windowMs: 1_000, buckets: 10 }

  it("begins its run at a window boundary", () => {
    expect(START_MS % 1_000).toBe(0)
  })

  it("counts an admission as wrong if the window before it already contained the limit", () => {
    const policy = policyOf(kindOf("fixed-window"), size)
    expect(judge(policy, at(998, 999, 1_000, 1_001, 1_002))).toEqual({
      requests: 5,
      admitted: 4,
      wronglyAdmitted: 2,
      wronglyRefused: 0,
      most: 4,
    })
  })

  it("counts a refusal as wrong if the window before it contained less than the limit", () => {
    const policy = policyOf(kindOf("sliding-window-strict"), size)
    // The units taken at 0 and 1 return at 1,100, when their sub-window ends. An exact log returns them at 1,001 and
    // 1,002.
    expect(judge(policy, at(0, 1, 1_000, 1_002, 1_099, 1_100))).toEqual({
      requests: 6,
      admitted: 3,
      wronglyAdmitted: 0,
      wronglyRefused: 2,
      most: 2,
    })
  })

  it("finds no wrong decision by the sliding-log algorithm", () => {
    const arrivals = poisson(30, 1_000, 50, 3)
    const judged = judge(policyOf(kindOf("sliding-log"), { limit: 20, windowMs: 1_000 }), arrivals)
    expect(judged).toMatchObject({ wronglyAdmitted: 0, wronglyRefused: 0 })
    expect(judged.admitted).toBe(admittedByLog(20, 1_000, arrivals))
  })
})
