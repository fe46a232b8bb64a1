import fc from "fast-check"
import { describe, expect, it, test } from "vitest"
import { mostUnits, percentOf, smallestPercent } from "./units.ts"

describe("percentOf", () => {
  test.each([
    [500, 5, 25],
    [500, 0.2, 1],
    [500, 0.199, 0],
    // With floating-point numbers, 0.57 * 10,000 is 5699.999999999999.
    [10_000, 0.57, 57],
    [3, 33.3333, 0],
    [3, 33.34, 1],
    [7, 1000, 70],
    [9_007_199_254_740_991, 1e-14, 0],
    [9_007_199_254_740_991, 1.2e-14, 1],
    [0, 50, 0],
    [50, 0, 0],
  ])("for the limit %d and %d percent returns %d units", (limit, percent, units) => {
    expect(percentOf(limit, percent)).toBe(units)
  })

  it("rounds down exactly, with any number of decimal places", () => {
    const places = fc.integer({ min: 0, max: 6 })
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 2 ** 40 }),
        fc.integer({ min: 1, max: 1_000_000 }),
        places,
        (limit, digits, n) => {
          const exact = (BigInt(limit) * BigInt(digits)) / 10n ** BigInt(n + 2)
          expect(percentOf(limit, digits / 10 ** n)).toBe(Number(exact))
        },
      ),
      { seed: 1, numRuns: 2_000 },
    )
  })

  it("returns one unit for smallestPercent, and none for a slightly smaller percentage", () => {
    const limit = fc.oneof(
      fc.integer({ min: 1, max: 1_000 }),
      fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
    )
    fc.assert(
      fc.property(limit, (limit) => {
        const least = smallestPercent(limit)
        expect(percentOf(limit, least)).toBe(1)
        expect(percentOf(limit, least * 0.9)).toBe(0)
      }),
      { seed: 2, numRuns: 2_000 },
    )
    expect([1, 3, 7, 500, 1_000].map(smallestPercent)).toEqual([100, 33.34, 14.29, 0.2, 0.1])
  })
})

test("mostUnits limits units times the window to below 2^53, and a log to 1,000 units", () => {
  expect(mostUnits("sliding-window", 60_000)).toBe(150_119_987_579_016)
  expect(mostUnits("token-bucket", 1_500)).toBe(6_004_799_503_160)
  expect(mostUnits("fixed-window", 60_000, true)).toBe((2 ** 53 - 2) / 2)
  expect(mostUnits("sliding-log", 60_000)).toBe(1_000)
  expect(mostUnits("sliding-log", Number.MAX_SAFE_INTEGER)).toBe(1)
})
