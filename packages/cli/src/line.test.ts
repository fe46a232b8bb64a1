import { expect, it } from "vitest"
import { columns, formatJson, printable } from "./line.ts"

it("columns are padded to their widest cell, without trailing blanks, even if a row has fewer cells", () => {
  expect(columns([])).toEqual([])
  expect(columns([["a", "b"], ["long", "c", "more"], ["d"]])).toEqual(["a     b", "long  c  more", "d"])
  expect(
    columns(
      [
        ["a", "used"],
        ["long", "7"],
      ],
      1,
    ),
  ).toEqual(["a     used", "long     7"])
})

it("JSON output escapes invisible characters", () => {
  expect(formatJson({ a: "\u202ex\u{e0001}" })).toBe('{"a":"\\u202ex\\udb40\\udc01"}')
  expect(formatJson(["\u0085"], 1)).toBe('[\n "\\u0085"\n]')
})

it("printed text escapes letters that look like nothing, and keeps emoji", () => {
  expect(printable("\u3164\u115f\u034f")).toBe("\\u{3164}\\u{115f}\\u{34f}")
  expect(printable("\u26a0\ufe0f")).toBe("\u26a0\ufe0f")
})
