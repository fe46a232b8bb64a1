import { describe, expect, it } from "vitest"
import { kneeOf } from "./knee.ts"
import { PeakCurve } from "./peak-curve.ts"

/** Returns the same random numbers from 0 to 1 in each run. */
function randomNumbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return (state + 0.5) / 2 ** 32
  }
}

function curveOf(peaks: readonly number[]): PeakCurve {
  const counts = new Map<number, number>()
  for (const peak of peaks) counts.set(peak, (counts.get(peak) ?? 0) + 1)
  return new PeakCurve(counts)
}

/** Returns the peaks of people, who rarely exceed `most`. */
function people(count: number, most: number, random: () => number): number[] {
  return Array.from({ length: count }, () =>
    Math.max(1, Math.round((most / 6) * (-Math.log(random())) ** 0.7)),
  )
}

describe("kneeOf", () => {
  it.each([1, 2, 3, 4, 5])("finds where people end and programs begin (random numbers %d)", (seed) => {
    const random = randomNumbers(seed)
    const programs = Array.from({ length: 25 }, (_, at) => Math.round(100 * 1.15 ** at))
    const humans = people(50_000, 30, random)
    const knee = kneeOf(curveOf([...humans, ...programs]))
    expect(knee).toBeGreaterThanOrEqual(12)
    expect(knee).toBeLessThanOrEqual(100)
  })

  it("finds the corner of two straight lines", () => {
    const counts = new Map<number, number>()
    // 100,000 clients above 1 fall to 10 clients above 10, and then slowly to 1 client above 1,000.
    let above = 100_000
    for (let peak = 1; peak <= 1_000; peak++) {
      const next = Math.round(peak <= 10 ? 100_000 * peak ** -4 : 10 * (peak / 10) ** -0.5)
      counts.set(peak, above - next)
      above = next
    }
    counts.set(1_001, above)
    expect(kneeOf(new PeakCurve(counts))).toBe(10)
  })

  it("finds the largest ordinary client next to a single program", () => {
    expect(kneeOf(curveOf([...Array<number>(290).fill(1), ...Array<number>(10).fill(2), 183]))).toBe(2)
  })

  it.each([0.7, 1, 1.5, 2, 3])("finds no knee on a straight line with slope %d", (slope) => {
    const counts = new Map<number, number>()
    let above = 1_000_000
    for (let peak = 1; above > 0 && peak < 10_000_000; peak = Math.ceil(peak * 1.05)) {
      const next = Math.floor(1_000_000 * peak ** -slope)
      if (above > next) counts.set(peak, above - next)
      above = next
    }
    expect(kneeOf(new PeakCurve(counts))).toBeUndefined()
  })

  it.each(Array.from({ length: 30 }, (_, seed) => seed + 1))(
    "finds no knee in random peaks of a power law (random numbers %d)",
    (seed) => {
      const random = randomNumbers(seed)
      const peaks = Array.from({ length: 20_000 }, () => Math.floor(random() ** (-1 / 1.3)))
      expect(kneeOf(curveOf(peaks))).toBeUndefined()
    },
  )

  it("finds no knee among people only, whose number falls ever faster", () => {
    expect(kneeOf(curveOf(people(50_000, 30, randomNumbers(9))))).toBeUndefined()
  })

  it.each([
    ["no clients", []],
    ["one client", [5]],
    ["equal clients", Array<number>(1_000).fill(7)],
    ["few clients", [1, 1, 1, 1, 2, 3, 400, 900]],
  ])("finds no knee with %s", (_name, peaks) => {
    expect(kneeOf(curveOf(peaks))).toBeUndefined()
  })
})
