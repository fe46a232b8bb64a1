import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { activeOf, candidatesOf } from "./candidates.ts"
import { PeakCurve } from "./peak-curve.ts"

const OPTIONS = { refuseAtMost: 0.001, mostUnits: 1e15, outliers: 0 }

const peaks = fc.array(fc.integer({ min: 1, max: 3_000 }), { minLength: 1, maxLength: 300 })

function curveOf(list: readonly number[]): PeakCurve {
  const counts = new Map<number, number>()
  for (const peak of list) counts.set(peak, (counts.get(peak) ?? 0) + 1)
  return new PeakCurve(counts)
}

describe("PeakCurve", () => {
  it("counts the clients above any limit", () => {
    fc.assert(
      fc.property(peaks, fc.nat(3_100), (list, limit) => {
        const curve = curveOf(list)
        const above = list.filter((peak) => peak > limit)
        expect(curve.above(limit)).toEqual({ clients: above.length, error: 0 })
        expect(curve.nextAbove(limit)).toBe(above.length === 0 ? undefined : Math.min(...above))
        expect(curve.all.clients).toBe(list.length)
        expect(curve.highest).toBe(Math.max(...list))
      }),
    )
  })

  it("finds the smallest limit for a number of refused clients", () => {
    fc.assert(
      fc.property(peaks, fc.nat(20), (list, most) => {
        const curve = curveOf(list)
        const limit = curve.leastLimit(most)
        expect(curve.above(limit).clients).toBeLessThanOrEqual(most)
        if (limit > 1) expect(curve.above(limit - 1).clients).toBeGreaterThan(most)
      }),
    )
  })

  it("has no clients if there are none", () => {
    const curve = curveOf([])
    expect([curve.all.clients, curve.above(1).clients, curve.leastLimit(0), curve.highest]).toEqual([
      0, 0, 1, 0,
    ])
  })

  it("states an error of 0.006 percentage points for 0.1% of a sample of a million clients", () => {
    const curve = new PeakCurve(
      new Map(),
      new Map([
        [1, 999_000],
        [50, 1_000],
      ]),
      2 ** 20,
    )
    const { clients, error } = curve.above(10)
    expect(clients / curve.all.clients).toBe(0.001)
    expect((100 * error) / curve.all.clients).toBeCloseTo(0.0062, 4)
  })
})

describe("candidatesOf", () => {
  it("suggests three limits for people and a few programs", () => {
    const people = Array.from({ length: 20_000 }, (_, at) => 1 + Math.floor(at ** 2 / 2.2e7))
    const programs = [90, 100, 110, 150, 200, 250, 300, 400, 500, 721]
    const found = candidatesOf(curveOf([...people, ...programs]), OPTIONS)
    expect(found).toEqual([
      { name: "careful", limit: 600, clients: 1, clientsError: 0, nextPeak: 721 },
      { name: "balanced", limit: 20, clients: 10, clientsError: 0, nextPeak: 90 },
      { name: "tight", limit: 20, clients: 10, clientsError: 0, nextPeak: 90 },
    ])
  })

  it("never refuses more than the given share with the tight candidate", () => {
    fc.assert(
      fc.property(peaks, fc.double({ min: 0, max: 1, noNaN: true }), (list, refuseAtMost) => {
        const tight = candidatesOf(curveOf(list), { ...OPTIONS, refuseAtMost }).find(
          ({ name }) => name === "tight",
        )
        expect(tight?.clients).toBeLessThanOrEqual(refuseAtMost * list.length)
      }),
    )
  })

  it("does not take the clients that make most of the requests for ordinary ones", () => {
    const curve = curveOf([...Array<number>(100).fill(4), 3_050])
    const careful = (outliers: number) =>
      candidatesOf(curve, { ...OPTIONS, outliers }).find(({ name }) => name === "careful")?.limit
    expect([careful(0), careful(1)]).toEqual([5_000, 6])
  })

  it("leaves out limits that the algorithm cannot count", () => {
    const curve = curveOf([...Array<number>(5_000).fill(3), 1_001])
    const found = candidatesOf(curve, { ...OPTIONS, mostUnits: 1_000 })
    expect(found.map(({ name }) => name)).toEqual(["tight"])
    expect(activeOf(found, curve, OPTIONS, false)?.name).toBe("tight")
  })

  it.each([
    ["balanced", 0.001],
    ["careful", 0.0001],
  ])("makes the %s candidate a rule if %d of the clients may be refused", (name, refuseAtMost) => {
    const curve = curveOf([
      ...Array.from({ length: 20_000 }, (_, at) => 1 + Math.floor(at ** 2 / 2.2e7)),
      ...[90, 100, 110, 150, 200, 250, 300, 400, 500, 721],
    ])
    const options = { ...OPTIONS, refuseAtMost }
    expect(activeOf(candidatesOf(curve, options), curve, options, false)?.name).toBe(name)
  })

  it("makes the tight candidate the rule of a login without a knee", () => {
    const curve = curveOf([...Array<number>(5_000).fill(3), 60])
    expect(activeOf(candidatesOf(curve, OPTIONS), curve, OPTIONS, true)).toMatchObject({
      name: "tight",
      limit: 3,
    })
  })
})
