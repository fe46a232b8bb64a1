import fc from "fast-check"
import { expect, test } from "vitest"
import { examples } from "../../../../test/test-length.ts"
import { FileTextError, parseJsonText } from "./json-text.ts"

function jsonMistake(text: string): { message: string; offset: number } | undefined {
  try {
    parseJsonText(text)
    return undefined
  } catch (error) {
    if (!(error instanceof FileTextError)) throw error
    const { line = 1, column = 1 } = error.place ?? {}
    const before = text.split("\n").slice(0, line - 1)
    return { message: error.reason, offset: before.reduce((sum, each) => sum + each.length + 1, column - 1) }
  }
}

test.each([
  ["", "the text ends where a value is expected", 0],
  ["  ", "the text ends where a value is expected", 2],
  ['{"a": }', "a value is expected", 6],
  ["[1,]", "a value is expected", 3],
  ['{"a":1,}', "a name in double quotes is expected", 7],
  ["{a:1}", "a name in double quotes is expected", 1],
  ["{'a':1}", "a name in double quotes is expected", 1],
  ['{"a"}', '":" is expected', 4],
  ['{"a" 1}', '":" is expected', 5],
  ['{"a":1', 'the text ends where "," or "}" is expected', 6],
  ['{"a":1 "b":2}', '"," or "}" is expected', 7],
  ["[1 2]", '"," or "]" is expected', 3],
  ["[1}", '"," or "]" is expected', 2],
  ['["a', "a value is expected", 1],
  ['["a\nb"]', "a value is expected", 1],
  ['["\\x"]', "a value is expected", 1],
  ["[01]", '"," or "]" is expected', 2],
  ["[1.]", '"," or "]" is expected', 2],
  ["[NaN]", "a value is expected", 1],
  ["[tru]", "a value is expected", 1],
  ["1 2", "the end of the text is expected", 2],
  ["// rules\n{}", "a value is expected", 0],
  ['{"a":1,"b":{"a":1},"a":2}', 'the member "a" appears twice', 19],
  ['{"a":1,"\\u0061":2}', 'the member "\\u0061" appears twice', 7],
])("parseJsonText rejects %j: %s at offset %d", (text, message, offset) => {
  expect(jsonMistake(text)).toEqual({ message, offset })
})

test.each([
  "null",
  ' [ 1 , -2.5e+3 , "a\\n\\u00e9" , true , false , { } , [ ] ] ',
  '{"a":{"a":[{"a":1},{"a":2}]},"__proto__":{"a":1}}',
  `"${"x".repeat(2_000_000)}\\n${"y".repeat(100)}"`,
])("parseJsonText accepts valid JSON (case %#)", (text) => {
  expect(jsonMistake(text)).toBeUndefined()
})

test("parseJsonText rejects nesting deeper than 32 levels, even if it would overflow the stack", () => {
  expect(jsonMistake("[".repeat(32) + "]".repeat(32))).toBeUndefined()
  for (const levels of [33, 200_000]) {
    expect(jsonMistake("[ ".repeat(levels) + "]".repeat(levels))).toEqual({
      message: "values are nested deeper than 32 levels",
      offset: 64,
    })
  }
})

test("parseJsonText agrees with JSON.parse on valid and on almost valid JSON", () => {
  const text = fc.oneof(
    fc.json({ noUnicodeString: false }),
    fc
      .array(
        fc.constantFrom(
          "{",
          "}",
          "[",
          "]",
          ",",
          ":",
          '"a"',
          '"b"',
          "1",
          "-",
          "e5",
          ".5",
          "null",
          " ",
          "\n",
          "\\",
        ),
        {
          maxLength: 9,
        },
      )
      .map((tokens) => tokens.join("")),
    fc.tuple(fc.json(), fc.nat(), fc.constantFrom("", ",", '"', "}", "\\", "0")).map(([json, at, char]) => {
      const cut = at % (json.length + 1)
      return json.slice(0, cut) + char + json.slice(cut + 1)
    }),
  )
  fc.assert(
    fc.property(text, (candidate) => {
      const mistake = jsonMistake(candidate)
      const accepts = (() => {
        try {
          JSON.parse(candidate)
          return true
        } catch {
          return false
        }
      })()
      if (mistake?.message.endsWith("appears twice")) return
      expect(mistake === undefined).toBe(accepts)
    }),
    { numRuns: examples(50, 1_000) },
  )
})
