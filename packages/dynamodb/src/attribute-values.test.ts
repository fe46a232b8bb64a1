import type { AttributeValue } from "@aws-sdk/client-dynamodb"
import fc from "fast-check"
import { expect, test } from "vitest"
import { attributeOf, bytesOf, canonicalText, plainMembers, plainValue } from "./attribute-values.ts"

const described = (value: unknown): unknown => (typeof value === "symbol" ? value.description : value)

test.each<[AttributeValue | undefined, unknown]>([
  [{ S: "" }, ""],
  [{ BOOL: false }, false],
  [{ NULL: true }, null],
  [{ L: [] }, []],
  [{ M: { a: { L: [{ N: "1" }, { S: "x" }] } } }, { a: [1, "x"] }],
  [{ SS: ["b", "a"] }, ["a", "b"]],
  [{ NS: ["9", "10"] }, [10, 9]],
  [{ B: new Uint8Array(3) }, "binary data of 3 bytes"],
  [{ BS: [new Uint8Array(3)] }, "a set of 1 binary values"],
  [{ $unknown: ["X", 1] }, "a value of an unknown type"],
  [undefined, "an attribute without a value"],
])("plainValue converts %j to %j", (value, expected) => {
  expect(described(plainValue(value))).toEqual(expected)
})

test.each([
  ["5", 5],
  ["-7", -7],
  ["0.5", 0.5],
  ["9007199254740991", 9_007_199_254_740_991],
  ["9007199254740993", "9007199254740993"],
  ["12345678901234567890.5", "12345678901234567890.5"],
  ["1.0000000000000000001", "1.0000000000000000001"],
  ["100000000000000000000000000000", "100000000000000000000000000000"],
])(
  "plainValue converts the number %s to %j: a number if it is exact, otherwise its text",
  (text, expected) => {
    expect(plainValue({ N: text })).toBe(expected)
  },
)

test("__proto__ is an ordinary member and does not change any prototype", () => {
  const hostile = Object.fromEntries([["__proto__", { M: { limit: { N: "1" } } }]])
  const plain = plainMembers({ m: { M: hostile } }).m as object
  expect(Object.keys(plain)).toEqual(["__proto__"])
  expect(Object.getPrototypeOf(plain)).toBe(Object.prototype)
  expect("limit" in plain).toBe(false)
})

test("plainValue stops at values that are nested deeper than DynamoDB allows", () => {
  let value: AttributeValue = { S: "x" }
  for (let depth = 0; depth < 20_000; depth++) value = { L: [value] }
  expect(canonicalText(plainValue(value))).toBe(
    `${"[".repeat(41)}Symbol(a value that is nested too deep)${"]".repeat(41)}`,
  )
})

const json = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.string({ unit: "grapheme" }),
    fc.boolean(),
    fc.integer(),
    fc
      .double({ noNaN: true, noDefaultInfinity: true, noInteger: true })
      .filter((number) => Object.is(number, Number(String(number)))),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(fc.oneof(fc.string(), fc.constant("__proto__")), tie("value"), { maxKeys: 4 }),
  ),
})).value

test("a plain value is unchanged after it is stored and read", () => {
  fc.assert(
    fc.property(json, (value) => {
      expect(JSON.stringify(plainValue(attributeOf(value)))).toBe(JSON.stringify(value))
    }),
  )
})

test("canonicalText is the same for equal values in any member order, and different for different values", () => {
  expect(canonicalText({ b: [1, { d: null, c: "x" }], a: true })).toBe(
    canonicalText({ a: true, b: [1, { c: "x", d: null }] }),
  )
  const values = [
    1,
    "1",
    [1],
    { 1: 1 },
    null,
    "null",
    [],
    {},
    [[]],
    [1, 2],
    [[1], 2],
    { a: 1, b: 2 },
    { a: { b: 2 } },
  ]
  expect(new Set(values.map(canonicalText)).size).toBe(values.length)
})

test.each<[string, AttributeValue, number]>([
  ["a", { S: "é" }, 3],
  ["name", { BOOL: true }, 5],
  ["n", { N: "123" }, 5],
  ["l", { L: [{ S: "ab" }, { S: "c" }] }, 1 + 3 + 3 + 2],
  ["m", { M: { ab: { S: "c" } } }, 1 + 3 + 1 + 3],
])("the attribute %s with the value %j takes %i bytes", (name, value, bytes) => {
  expect(bytesOf(name, value)).toBe(bytes)
})
