import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { acceptsJson, rememberJsonAcceptance } from "./accepts-json.ts"

const LEDGER: [accept: string | readonly string[] | undefined, json: boolean][] = [
  [undefined, true],
  ["", true],
  ["  ", true],
  ["*/*", true],
  ["application/json", true],
  ["application/problem+json", true],
  ["Application/JSON", true],
  ["application/*", true],
  ["application/json; charset=utf-8", true],
  ["application/json;q=0.1, text/html", true],
  ["application/json, text/plain, */*", true],
  ["text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8", true],
  ["application/json;q=0, application/problem+json", true],
  ["application/*;q=0, application/json", true],
  [["text/html", "application/json"], true],
  [`text/html${" ".repeat(248)}`, true], // 257 characters: too long to be worth reading
  [["text/html", "x".repeat(300)], true],
  [`text/html${" ".repeat(247)}`, false],
  ["text/html", false],
  ["text/plain", false],
  ["text/*", false],
  ["application/xml", false],
  ["application/jsonx", false],
  [["text/html", "text/plain"], false],
  ["*/*;q=0", false],
  ["application/json;q=0", false],
  ["application/json;q=0.000", false],
  ["application/json;q=0, */*", false],
  ["application/problem+json;q=0, */*", false],
  ["text/html, application/*;q=0, */*;q=0.5", false],
  ["not a media range", false],
]

describe.each([
  ["acceptsJson", acceptsJson],
  ["rememberJsonAcceptance", rememberJsonAcceptance()],
])("%s", (_name, accepts) => {
  it.each(LEDGER)("for the Accept header %j returns %j", (accept, json) => {
    expect(accepts(accept)).toBe(json)
    expect(accepts(accept)).toBe(json)
  })

  it("returns a boolean for any header that a client sends", () => {
    const pieces = fc.constantFrom(
      "*",
      "/",
      ",",
      ";",
      "=",
      '"',
      "\\",
      "q",
      "0",
      ".",
      " ",
      "\t",
      "é",
      "a",
      "json",
    )
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(pieces).map((parts) => parts.join("")),
        ),
        (accept) => {
          expect(accepts(accept)).toBeTypeOf("boolean")
        },
      ),
    )
  })
})

it("rememberJsonAcceptance caches up to 64 results, but none for long or repeated headers", () => {
  const remembered = new Map([["text/x", true]])
  const remembering = rememberJsonAcceptance(remembered)
  expect(remembering("text/x")).toBe(true)
  const long = `text/html${" ".repeat(247)}`
  for (const accept of ["text/html", long, `${long} `, "*/*", ["text/html"], undefined]) remembering(accept)
  expect([...remembered.keys()]).toEqual(["text/x", "text/html", long])
  for (let index = 0; index < 61; index++) remembering(`text/x-${index}`)
  expect(remembered.size).toBe(64)
  expect(remembering("application/json")).toBe(true)
  expect([...remembered]).toEqual([["application/json", true]])
})

it("rememberJsonAcceptance returns the right result for more headers than fit into its cache", () => {
  const remembering = rememberJsonAcceptance()
  for (let round = 0; round < 2; round++) {
    for (let index = 0; index < 200; index++) {
      expect(remembering(`text/x-${index}`)).toBe(false)
      expect(remembering(`text/x-${index}, application/json`)).toBe(true)
    }
  }
})
