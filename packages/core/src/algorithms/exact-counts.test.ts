import { describe, expect, it } from "vitest"
import { firstOffsetBelow, timeUnitMs, weighted } from "./exact-counts.ts"

/** Length in milliseconds of the widest window whose unit of time is one second. */
const WIDEST_MS = 94_000_000_000

describe("timeUnitMs()", () => {
  it.each([
    // Columns: highest count, window, unit of time.
    [1, 1, 1],
    [3_000_000, 2_592_000_000, 1],
    [5_000_000, 2_592_000_000, 1_000],
    // The product of these two numbers is 2^53 - 1.
    [441_650_591, 20_394_401, 1],
    [441_650_592, 20_394_401, 1_000],
    [5_000_000, WIDEST_MS, 1_000],
    [5_000_000, WIDEST_MS + 1, 2_000],
    [5_000_000, 3 * WIDEST_MS, 3_000],
  ])("for counts up to %i in a window of %i ms returns %i ms", (most, windowMs, unitMs) => {
    expect(timeUnitMs(most, windowMs)).toBe(unitMs)
  })
})

describe("the weighted share of a count whose product with the window exceeds 2^53", () => {
  const seconds = WIDEST_MS / 1_000

  it("falls below a given number at exactly the right second", () => {
    for (let i = 0; i < 300; i++) {
      const [count, below] = [96_000_000 + i * 101_009, 1 + (i % 7)]
      const offset = (BigInt(count - below) * BigInt(seconds)) / BigInt(count) + 1n
      expect(firstOffsetBelow(count, below, WIDEST_MS, 1)).toBe(Number(offset) * 1_000)
    }
  })

  it("is rounded down exactly", () => {
    for (let i = 0; i < 300; i++) {
      const [count, elapsed] = [Number.MAX_SAFE_INTEGER - i * 7_919, (i * 313_337) % seconds]
      const share = (BigInt(count) * BigInt(seconds - elapsed)) / BigInt(seconds)
      expect(weighted(count, elapsed * 1_000 + 999, WIDEST_MS, 1)).toBe(Number(share))
    }
  })
})
