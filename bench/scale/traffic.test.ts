import { describe, expect, it } from "vitest"
import { START_MS } from "./timeline.ts"
import { Arrivals, equalShares, harmonicShares, spread } from "./traffic.ts"

const sum = (numbers: readonly number[]) => numbers.reduce((total, one) => total + one, 0)

/** Returns the number of requests in each of the first 10,000 milliseconds. */
function countsOf(arrivals: Arrivals): readonly number[] {
  return Array.from({ length: 10_000 }, (_, ms) => arrivals.until(START_MS + ms + 1))
}

describe("traffic shares", () => {
  it("of three processes are proportional to 1, 1/2 and 1/3", () => {
    const [first, second, third] = harmonicShares(3)
    expect(first).toBeCloseTo(6 / 11, 12)
    expect(second).toBeCloseTo(3 / 11, 12)
    expect(third).toBeCloseTo(2 / 11, 12)
  })

  it.each([1, 4, 64])("add up to 1 if the number of processes is %i", (count) => {
    for (const shares of [harmonicShares(count), equalShares(count)]) {
      expect(shares).toHaveLength(count)
      expect(sum(shares)).toBeCloseTo(1, 12)
    }
  })
})

describe("arrivals", () => {
  it("are the same for the same seed, and differ for another seed", () => {
    const counts = countsOf(new Arrivals(2, 3))
    expect(countsOf(new Arrivals(2, 3))).toEqual(counts)
    expect(countsOf(new Arrivals(2, 5))).not.toEqual(counts)
  })

  it("have the requested mean per millisecond, and a variance equal to the mean", () => {
    const counts = countsOf(new Arrivals(2, 3))
    const mean = sum(counts) / counts.length
    const variance = sum(counts.map((count) => (count - mean) ** 2)) / counts.length
    expect(mean).toBeGreaterThan(1.9)
    expect(mean).toBeLessThan(2.1)
    expect(variance / mean).toBeGreaterThan(0.9)
    expect(variance / mean).toBeLessThan(1.1)
  })

  it("are returned by until() only once", () => {
    const arrivals = new Arrivals(2, 3)
    const total = sum(countsOf(new Arrivals(2, 3)))
    expect(arrivals.until(START_MS + 10_000)).toBe(total)
    expect(arrivals.until(START_MS + 10_000)).toBe(0)
  })

  it("of each process match its share of the traffic, and differ from those of other processes", () => {
    const [most = [], least = [], same = []] = spread(4, [0.5, 0.25, 0.25], 3).map(countsOf)
    expect(sum(most) / sum(least)).toBeGreaterThan(1.9)
    expect(sum(most) / sum(least)).toBeLessThan(2.1)
    expect(same).not.toEqual(least)
  })
})
