import fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  countOf,
  digits,
  digitsFor,
  isPacked,
  numberAt,
  pack,
  parseDigits,
  shift,
  unpack,
} from "./packed-counts.ts"

const MOST = Number.MAX_SAFE_INTEGER

describe("packed counts", () => {
  it.each([
    // The digits are the 64 characters from "0" to "o".
    [[], ""],
    [[0], ""],
    [[0, 0, 0], ""],
    [[1], "11"],
    [[9, 10, 63], "19:o"],
    [[63, 0, 1], "1o01"],
    [[5, 0, 0], "15"],
    [[0, 5], "105"],
    [[64], "210"],
    [[4_095, 1], "2oo01"],
    [[4_096, 0, 63], "310000000o"],
    [[MOST], "9Ooooooooo"],
  ])("represent %j as %j", (numbers, text) => {
    expect(pack(numbers)).toBe(text)
    const kept = unpack(text)
    expect(kept).toEqual(numbers.slice(0, kept.length))
    expect(countOf(text)).toBe(kept.length)
  })

  it.each([
    [undefined, true],
    ["", true],
    ["19:o", true],
    ["9Ooooooooo", true],
    ["0", false],
    ["x19", false],
    [7, false],
    [null, false],
  ])("are distinguished from other values: isPacked(%j) returns %j", (value, expected) => {
    expect(isPacked(value)).toBe(expected)
  })

  it("contain 0 at every index beyond their end", () => {
    expect([0, 1, 2, 3, 60].map((index) => numberAt("219150", index))).toEqual([73, 69, 0, 0, 0])
    expect(numberAt("", 0)).toBe(0)
  })

  it.each([
    [0, 1],
    [63, 1],
    [64, 2],
    [4_095, 2],
    [4_096, 3],
    [262_143, 3],
    [262_144, 4],
    [MOST, 9],
  ])("with a largest number of %i have a width of %i", (most, width) => expect(digitsFor(most)).toBe(width))

  it.each([
    // Columns: packed numbers, number of zeros, new number, how many numbers to keep, result.
    ["1321", 0, 4, 2, "1432"],
    ["1321", 0, 4, 3, "14321"],
    ["1321", 1, 4, 2, "10432"],
    ["1321", 0, 0, 2, "1032"],
    ["1301", 0, 4, 2, "143"],
    ["1001", 0, 4, 2, "14"],
    ["1321", 0, 4, 0, "14"],
    ["", 0, 4, 0, "14"],
    ["", 2, 4, 0, "1004"],
    ["", 2, 0, 0, ""],
    // All numbers get another digit, and keep this digit until the string is empty.
    ["1321", 0, 63, 2, "1o32"],
    ["1321", 0, 64, 2, "2100302"],
    ["1321", 1, 64, 2, "200100302"],
    ["2100302", 0, 1, 2, "2011003"],
    ["20310", 0, 1, 1, "20103"],
    ["2100302", 2, 1, 1, "200000110"],
    ["2100002", 0, 1, 2, "20110"],
    ["2100302", 0, 5, 0, "15"],
  ])(
    "starting as %j, after a shift by %i zeros and the number %i with %i numbers kept, become %j",
    (packed, empty, number, kept, text) => {
      expect(shift(packed, empty, number, kept)).toBe(text)
    },
  )

  it("need 121 characters for 60 counts up to 4,095, and 241 for 60 counts up to a million", () => {
    expect(pack(new Array(60).fill(4_095))).toHaveLength(121)
    expect(pack(new Array(60).fill(1_000_000))).toHaveLength(241)
  })

  it("unpack to the original numbers, and contain only digits", () => {
    const number = fc.oneof(fc.nat(70), fc.nat(5_000), fc.maxSafeNat())
    fc.assert(
      fc.property(fc.array(number, { maxLength: 70 }), (numbers) => {
        const text = pack(numbers)
        expect(text).toMatch(/^([1-9][0-o]+)?$/)
        expect(numbers.map((_, index) => numberAt(text, index))).toEqual(numbers)
        expect(unpack(text)).toEqual(numbers.slice(0, countOf(text)))
        // The string is as short as possible.
        if (text !== "") {
          const width = text.charCodeAt(0) - 48
          expect(Math.max(...numbers)).toBeLessThan(64 ** width)
          if (width > 1) expect(Math.max(...numbers)).toBeGreaterThanOrEqual(64 ** (width - 1))
          expect(unpack(text).at(-1)).toBeGreaterThan(0)
        }
      }),
      { seed: 6_101, numRuns: 500 },
    )
  })

  it("are parsed from any index, and missing digits are read as 0", () => {
    expect(digits(4_097, 3)).toBe("101")
    expect(digits(1, 3)).toBe("001")
    expect(parseDigits("xx101", 2, 3)).toBe(4_097)
    expect(parseDigits("1", 0, 2)).toBe(64)
  })
})
