import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { activeOf, candidatesOf, farClients } from "./candidates.ts"
import { PeakCurve } from "./peak-curve.ts"
import { roundLimit } from "./round-limit.ts"

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

  it("contains no clients if no client was counted", () => {
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
      { name: "careful", limit: 30, clients: 10, clientsError: 0, nextPeak: 90 },
      { name: "balanced", limit: 20, clients: 10, clientsError: 0, nextPeak: 90 },
      { name: "tight", limit: 20, clients: 10, clientsError: 0, nextPeak: 90 },
    ])
  })

  it("returns only candidates that refuse at most the given share, or the clients far above the others", () => {
    fc.assert(
      fc.property(peaks, fc.double({ min: 0, max: 1, noNaN: true }), (list, refuseAtMost) => {
        const curve = curveOf(list)
        const most = Math.max(
          Math.floor(refuseAtMost * list.length),
          refuseAtMost === 0 ? 0 : farClients(curve),
        )
        for (const { clients } of candidatesOf(curve, { ...OPTIONS, refuseAtMost }))
          expect(clients).toBeLessThanOrEqual(most)
      }),
    )
  })

  const shares = fc.constantFrom(0, 0.0001, 0.001, 0.01, 0.1)
  /** Ordinary clients, and some clients whose peaks are higher by an order of magnitude. */
  const mixed = fc
    .tuple(peaks, fc.array(fc.integer({ min: 1, max: 2_000_000 }), { maxLength: 15 }))
    .map((lists) => lists.flat())
  const limitsOf = (list: readonly number[], options: Partial<typeof OPTIONS> = {}) =>
    Object.fromEntries(
      candidatesOf(curveOf(list), { ...OPTIONS, ...options }).map(({ name, limit }) => [name, limit]),
    ) as Readonly<Record<"careful" | "balanced" | "tight", number>>

  it("never returns a tight limit above balanced, or balanced above careful", () => {
    fc.assert(
      fc.property(mixed, shares, fc.nat(10), (list, refuseAtMost, outliers) => {
        const { careful, balanced = careful, tight } = limitsOf(list, { refuseAtMost, outliers })
        expect(tight).toBeLessThanOrEqual(balanced)
        expect(balanced).toBeLessThanOrEqual(careful)
      }),
      { numRuns: 1_000 },
    )
  })

  it("does not raise tight above three times the peak of the others because of one more client", () => {
    const oneMore = fc.integer({ min: 1, max: 2_000_000 })
    fc.assert(
      fc.property(
        mixed,
        oneMore,
        shares.filter((share) => share > 0),
        (list, peak, refuseAtMost) => {
          const { tight } = limitsOf([...list, peak], { refuseAtMost })
          // A peak below ten is never far above others.
          expect(tight).toBeLessThanOrEqual(roundLimit(Math.max(10, 3 * Math.max(...list))))
        },
      ),
      { numRuns: 1_000 },
    )
  })

  it("does not raise tight if more clients may be refused", () => {
    fc.assert(
      fc.property(mixed, shares, shares, (list, one, other) => {
        const [fewer, more] = [Math.min(one, other), Math.max(one, other)]
        expect(limitsOf(list, { refuseAtMost: more }).tight).toBeLessThanOrEqual(
          limitsOf(list, { refuseAtMost: fewer }).tight,
        )
      }),
    )
  })

  it.each([
    ["one client that guesses passwords", [101], 1],
    ["two such clients", [101, 60], 2],
    [
      "eight such clients, each far above the next",
      [9, 30, 100, 300, 1_000, 3_000, 10_000, 30_000].map((n) => n + 3),
      8,
    ],
  ])("ignores %s among 897 others", (_, guessers, far) => {
    const list = [...Array<number>(600).fill(1), ...Array<number>(297).fill(2), ...guessers]
    expect(farClients(curveOf(list))).toBe(far)
    expect(limitsOf(list)).toEqual({ careful: 3, balanced: 2, tight: 2 })
  })

  it.each([
    ["a peak below ten", [9]],
    ["less than three times the others", [11]],
    ["a group of more than 1%", Array<number>(10).fill(101)],
  ])("treats clients with %s as ordinary clients", (_, others) => {
    const list = [...Array<number>(890).fill(4), ...others]
    expect(farClients(curveOf(list))).toBe(0)
    expect(limitsOf(list).tight).toBe(roundLimit(Math.max(...others)))
  })

  it("admits every client if no client may be refused", () => {
    const list = [...Array<number>(897).fill(2), 101]
    expect(limitsOf(list, { refuseAtMost: 0 })).toEqual({ careful: 200, tight: 120 })
  })

  it("does not treat the clients that make most of the requests as ordinary clients", () => {
    const list = [...Array<number>(300).fill(4), ...Array.from({ length: 8 }, (_, at) => 3_050 + at)]
    expect(limitsOf(list, { outliers: 0 }).careful).toBe(5_000)
    expect(limitsOf(list, { outliers: 8 })).toMatchObject({ careful: 6, tight: 4 })
  })

  it("omits limits that the algorithm cannot count", () => {
    const curve = curveOf([...Array<number>(5_000).fill(800), 1_001])
    const found = candidatesOf(curve, { ...OPTIONS, mostUnits: 1_000 })
    expect(found.map(({ name }) => name)).toEqual(["tight"])
    expect(activeOf(found)?.name).toBe("tight")
  })

  it.each([
    ["balanced", 0.001],
    ["careful", 0.0001],
  ])("makes the %s candidate a rule if %d of the clients may be refused", (name, refuseAtMost) => {
    const curve = curveOf([
      ...Array.from({ length: 20_000 }, (_, at) => 1 + Math.floor(at ** 2 / 2.2e7)),
      ...[90, 95, 100, 110, 150, 200, 250, 300, 400, 500, 721],
    ])
    expect(activeOf(candidatesOf(curve, { ...OPTIONS, refuseAtMost }))?.name).toBe(name)
  })
})
