import { expect, it } from "vitest"
import { columns, formatJson } from "./line.ts"

it("columns are padded to their widest cell, without trailing blanks, even if a row has fewer cells", () => {
  expect(columns([])).toEqual([])
  expect(columns([["a", "b"], ["long", "c", "more"], ["d"]])).toEqual(["a     b", "long  c  more", "d"])
})

it("JSON output escapes invisible characters", () => {
  expect(formatJson({ a: "\u202ex\u{e0001}" })).toBe('{"a":"\\u202ex\\udb40\\udc01"}')
  expect(formatJson(["\u0085"], 1)).toBe('[\n "\\u0085"\n]')
})
