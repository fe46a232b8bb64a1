import fc from "fast-check"
import { expect, test } from "vitest"
import { decimal } from "./header-values.ts"

test.each([
  [0, "0"],
  [7, "7"],
  [999, "999"],
  [1000, "1000"],
  [1001, "1001"],
  [10_050, "10050"],
  [999_999, "999999"],
  [1_000_000, "1000000"],
  [99_999_999, "99999999"],
  [2_147_483_648, "2147483648"],
  [999_999_999_999_999, "999999999999999"],
  [Number.MAX_SAFE_INTEGER, "9007199254740991"],
])("decimal writes %d as %s", (value, text) => {
  expect(decimal(value)).toBe(text)
})

test("decimal writes a whole number exactly as String() does", () => {
  fc.assert(
    fc.property(fc.oneof(fc.maxSafeNat(), fc.nat(2_000_000)), (value) => {
      expect(decimal(value)).toBe(String(value))
    }),
  )
})
