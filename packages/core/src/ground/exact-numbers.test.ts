import fc from "fast-check"
import { describe, expect, it, test } from "vitest"
import { withExactNumbers } from "./exact-numbers.ts"

const parsed = (json: string): unknown => JSON.parse(withExactNumbers(json))

describe("withExactNumbers returns a JSON text in which", () => {
  it.each([
    ["12345678901234567", "12345678901234567"],
    ["12345678901234568", 12_345_678_901_234_568],
    ["-12345678901234567", "-12345678901234567"],
    ["9007199254740991", 9_007_199_254_740_991],
    ["9007199254740993", "9007199254740993"],
    ["12345678901234567.0", "12345678901234567"],
    ["1.2345678901234567e16", "12345678901234567"],
    ["1234567890123456700e-2", "12345678901234567"],
    ["1234567890.123456789", "1234567890.123456789"],
    ["0.00000123456789012345678", "0.00000123456789012345678"],
    ["0.000000123456789012345678", "1.23456789012345678e-7"],
    ["1e21", "1000000000000000000000"],
    ["1000000000000000000000", "1000000000000000000000"],
    ["1e400", `1${"0".repeat(400)}`],
    ["1e1001", "1e+1001"],
    ["12e99999999", "1.2e+100000000"],
    ["1e-400", "1e-400"],
  ])("the number %s is %j", (number, exact) => {
    expect(parsed(`{"id":${number}}`)).toEqual({ id: exact })
    expect(parsed(`[1, ${number} ]`)).toEqual([1, exact])
    expect(parsed(number)).toEqual(exact)
  })

  it.each(["5", "5.0", "5e0", "50e-1", "0.5E+1", "5.0000000000000000000", "0.05e2"])(
    "5 is a number, even if it is written as %s",
    (number) => {
      expect(parsed(`{"id":${number}}`)).toEqual({ id: 5 })
    },
  )

  it.each(["0", "-0", "0.0", "-0e5", "0.00000000000000000000"])(
    "0 is a number, even if it is written as %s",
    (number) => {
      expect(String(parsed(number))).toBe("0")
    },
  )

  it("two numbers are the same string or number only if they have the same value", () => {
    const digits = fc
      .array(fc.constantFrom(0, 1, 9), { minLength: 1, maxLength: 20 })
      .map((each) => each.join(""))
    fc.assert(
      fc.property(digits, digits, fc.integer({ min: 0, max: 20 }), (one, other, zeros) => {
        const [first, second] = [BigInt(one), BigInt(other)]
        expect(String(parsed(`${first}`)) === String(parsed(`${second}`))).toBe(first === second)
        expect(parsed(`${first}.${"0".repeat(zeros + 1)}`)).toEqual(parsed(`${first}`))
        expect(parsed(`${first * 10n ** BigInt(zeros)}e-${zeros}`)).toEqual(parsed(`${first}`))
      }),
    )
  })

  it("all other values are the same as with JSON.parse", () => {
    // Use no larger numbers. JSON.stringify writes them with an exponent, so they would become strings with all of
    // their digits.
    const json = fc.json().filter((text) => !text.includes("e+"))
    fc.assert(fc.property(json, (text) => void expect(parsed(text)).toEqual(JSON.parse(text))))
    const texts = ['": 12345678901234567"', '"\\" 12345678901234567"', '"\\\\"', '"\\u0022: 1e400, "']
    for (const text of texts) {
      expect(parsed(`{${text}: [${text}, 12345678901234567]}`)).toEqual({
        [JSON.parse(text)]: [JSON.parse(text), "12345678901234567"],
      })
    }
  })
})

test.each([
  "{12345678901234567: 1}",
  "[012345678901234567]",
  "[12345678901234567.]",
  "[1 12345678901234567]",
  '["12345678901234567 , 1e400',
  ": 12345678901234567",
])("withExactNumbers returns the invalid JSON %s unchanged", (json) => {
  expect(withExactNumbers(json)).toBe(json)
})

test("withExactNumbers keeps the spelling of a number with more than 1,000 characters, in linear time", () => {
  const zeros = "0".repeat(1_000_000)
  expect(parsed(`[1${zeros}1, "${"\\\\".repeat(500_000)}"]`)).toEqual([`1${zeros}1`, "\\".repeat(500_000)])
})
