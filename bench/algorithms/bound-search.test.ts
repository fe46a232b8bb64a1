import { describe, expect, it } from "vitest"
import { playAdversary } from "./adversary.ts"
import { START_MS } from "./counter.ts"
import { searchAll } from "./exhaustive.ts"
import { KINDS, kindOf } from "./kinds.ts"
import { MostIn } from "./most-in.ts"
import { playOutflow } from "./outflow.ts"

const SIZE = { limit: 2, windowMs: 6, buckets: 3, burst: 3 }

describe("MostIn", () => {
  it("finds the most units in any time span of the given length", () => {
    const any = new MostIn({ lengthMs: 6, isAligned: false })
    for (const atMs of [0, 4, 5, 6, 11, 30]) any.add({ atMs, units: 1 })
    // The stretch from 4 to 9 contains three units. The stretches from 0 to 5 and from 6 to 11 contain three and two.
    expect(any.most).toBe(3)
    any.add({ atMs: 35, units: 9 })
    expect([any.most, any.trace.map(({ atMs }) => atMs)]).toEqual([10, [30, 35]])
  })

  it("considers only windows aligned with the epoch if isAligned is true", () => {
    const aligned = new MostIn({ lengthMs: 6, isAligned: true })
    for (const atMs of [5, 6, 11, 12, 13, 17]) aligned.add({ atMs, units: 1 })
    expect(aligned.trace.map(({ atMs }) => atMs)).toEqual([12, 13, 17])
  })

  it("rejects a time that is before the previous time", () => {
    const any = new MostIn({ lengthMs: 6, isAligned: false })
    any.add({ atMs: 5, units: 1 })
    expect(() => any.add({ atMs: 4, units: 1 })).toThrow("4 is earlier than 5")
  })
})

/** The most units that a client gets in the whole window, and in each other stretch that has a bound. */
const KNOWN: Readonly<Record<string, readonly number[]>> = {
  // The client gets 2 units at the end of a window, and 2 more as the next window ends. Within half a window, the
  // client gets 1 unit more than the limit.
  "sliding-window": [4, 2, 3],
  // Sub-windows of two milliseconds are too short for the weight of 2 units to fall below 1, unlike in the test with
  // two sub-windows.
  "sliding-window, buckets": [2, 2],
  "sliding-window-strict": [2],
  "sliding-log": [2],
  "fixed-window": [4, 2],
  // The first unit starts the window, so it is a whole window older than the last units.
  "fixed-window, first-hit": [3],
  // A full bucket contains 3 units, and 1 more is refilled. A whole window would refill 2, but the first and last
  // millisecond of a window are only 5 ms apart.
  "token-bucket": [4],
  // The client gets 3 units just before a boundary, and 2 more just after it.
  "token-bucket, periodic": [5],
  "leaky-bucket": [4],
}

describe.each(KINDS)("$name", (kind) => {
  it("admits exactly its known maximum over all possible request patterns", () => {
    const { worst, pasts } = searchAll(kind, SIZE)
    expect(worst.map(({ most }) => most)).toEqual(KNOWN[kind.name])
    expect(pasts).toBeGreaterThan(100)
  })

  it("stays within its bounds, but nearly reaches them, against a greedy client", () => {
    const worst = playAdversary(kind, 40_000, 7)
    for (const { most, allowed, size, bound } of worst)
      expect(most, `${bound.of}, L = ${size.limit}`).toBeLessThanOrEqual(allowed)
    // A bucket may be just short of another unit when the window ends, so the bound is not always reached exactly.
    for (const { most, allowed } of worst) expect(most).toBeGreaterThanOrEqual(0.95 * allowed)
    expect(playAdversary(kind, 40_000, 7)).toEqual(worst)
  })
})

it("a sliding window with two sub-windows admits more than the limit in a window, but not in half a window", () => {
  const { worst } = searchAll(kindOf("sliding-window, buckets"), { limit: 2, windowMs: 8, buckets: 2 })
  expect(worst.map(({ most }) => most)).toEqual([3, 2])
})

it("searchAll visits each distinct state of the counter and of the past window's admissions once", () => {
  // This is a fixed window of 2 ms with a limit of 1, played over 8 ms. Each of the 4 windows grants either nothing,
  // or one unit in one of its two milliseconds.
  const names = new Set<string>()
  for (let nowMs = 0; nowMs < 8; nowMs++) {
    for (let choices = 0; choices < 3 ** 4; choices++) {
      const taken = [0, 1, 2, 3]
        .map((window) => 2 * window + (Math.floor(choices / 3 ** window) % 3) - 1)
        .filter((atMs, window) => atMs >= 2 * window && atMs <= nowMs)
      const holds = Math.floor((taken.at(-1) ?? -2) / 2)
      names.add(`${nowMs}: ${holds}, ${taken.filter((atMs) => atMs > nowMs - 2)}`)
    }
  }
  expect(searchAll(kindOf("fixed-window"), { limit: 1, windowMs: 2 }).pasts).toBe(names.size)
})

it("searchAll reports the admissions that exceed a bound, with their times", () => {
  const kind = kindOf("fixed-window")
  const bounds = kind.bounds.slice(0, 1).map((bound) => ({ ...bound, most: () => SIZE.limit }))
  const wrong = { ...kind, bounds }
  const [found] = searchAll(wrong, SIZE).worst
  expect(found).toMatchObject({ most: 4, allowed: 2 })
  const atMs = found?.trace.map((admission) => admission.atMs - START_MS) ?? []
  // The admissions must lie on both sides of a boundary.
  expect(Math.floor((atMs[0] as number) / 6)).toBe(Math.floor((atMs.at(-1) as number) / 6) - 1)
})

it("a leaky bucket releases requests evenly, and never more than the limit in a window", async () => {
  expect(await playOutflow(5_000, 7)).toMatchObject({ most: 7, allowed: 7, leastGapMs: 14, evenGapMs: 14 })
})
