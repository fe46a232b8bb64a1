import { expect, it } from "vitest"
import { pathPrefix } from "./path-prefix.ts"

const ANY = undefined

it.each([
  ["/", []],
  ["/*", []],
  ["/a/", ["a"]],
  ["/A/%62/c", ["a", "b", "c"]],
  ["/users/:id/files", ["users", ANY, "files"]],
  ["/users/:id.json/x", ["users", ANY, "x"]],
  // A non-ASCII letter may match letters of the other case by rules that only the matcher knows.
  ["/ä/b", [ANY, "b"]],
  ["/files/*", ["files"]],
  ["/files/*rest/raw", ["files"]],
  ["/files-*rest", []],
  ["/files{/:version}", ["files"]],
  ["/files{/a}{/b}", ["files"]],
  ["/files/{a}", ["files"]],
  // "/filesx" and "/files/ab" are paths of these patterns.
  ["/files{x}", []],
  ["/files{x}/c", []],
  ["/files{/a}b", []],
])("every path that the pattern %j matches begins with the segments %j", (pattern, segments) => {
  expect(pathPrefix(pattern)).toEqual(segments)
})
