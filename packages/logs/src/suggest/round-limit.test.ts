import fc from "fast-check"
import { expect, it } from "vitest"
import { roundLimit } from "./round-limit.ts"

it.each([
  [0, 1],
  [1, 1],
  [1.5, 2],
  [2, 2],
  [7, 8],
  [9, 10],
  [10, 10],
  [11, 12],
  [13, 15],
  [21, 25],
  [721, 800],
  [801, 1_000],
  [1_000, 1_000],
  [1_001, 1_200],
  [999_999_999, 1_000_000_000],
])("roundLimit rounds %d up to %d", (least, limit) => {
  expect(roundLimit(least)).toBe(limit)
})

it("roundLimit never returns a limit below the given limit, or more than half above it", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2 ** 50 }), (least) => {
      const limit = roundLimit(least)
      expect(Number.isInteger(limit)).toBe(true)
      expect(limit).toBeGreaterThanOrEqual(least)
      expect(limit).toBeLessThanOrEqual(Math.max(1, 1.5 * least))
      expect(Number(String(limit).replace(/0+$/, ""))).toSatisfy((digits: number) =>
        [1, 12, 15, 2, 25, 3, 4, 5, 6, 8].includes(digits),
      )
    }),
  )
})
