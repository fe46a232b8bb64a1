import { describe, expect, it } from "vitest"
import { InvalidRuleError } from "../../ground/errors.ts"
import { formatRuleDocument } from "../documents/format-document.ts"
import { parseRuleDocument } from "../documents/rule-document.ts"
import type { RuleRejection } from "../rejection.ts"
import type { Rule } from "../rule.ts"
import { parseCodeRules } from "./parse-rule.ts"

const RULE = { field: "ip", limit: 5, window: "1 minute" } as const
const DATA = "a string, an object or an array that JSON can represent, at most 16384 characters"
const STATUS = "a whole number from 400 to 599; onRejected can send another one"
const TYPE = 'a string such as "text/html; charset=utf-8"'

const parsed = (rejection: unknown) => parseCodeRules([{ ...RULE, rejection }], "rules")
const problemsOf = (rejection: unknown): string[] =>
  parsed(rejection).problems.map(
    ({ path, message, accepted }) => `${path.slice("rules[0].".length)}: ${message}; ${accepted}`,
  )
const circle: Record<string, unknown> = {}
circle.circle = circle
const nested = (depth: number): unknown => (depth === 0 ? [] : [nested(depth - 1)])
const own = `${DATA}, or a function (request, rejection, decision) that returns one`

describe("a rejection", () => {
  it.each<[string, unknown, unknown]>([
    ["a status", { status: 503 }, { status: 503 }],
    ["no members", {}, {}],
    ["members that are undefined", { status: undefined, body: undefined, contentType: undefined }, {}],
    [
      "a string as its body",
      { body: "later" },
      { body: { text: "later", contentType: "text/plain; charset=utf-8" } },
    ],
    ["an empty body", { body: "" }, { body: { text: "", contentType: "text/plain; charset=utf-8" } }],
    [
      "an object as its body",
      { status: 400, body: { error: "later", tries: [1, 0.5, null, true], left: undefined } },
      {
        status: 400,
        body: { text: '{"error":"later","tries":[1,0.5,null,true]}', contentType: "application/json" },
      },
    ],
    [
      "an array as its body",
      { body: [{ code: 7 }] },
      { body: { text: '[{"code":7}]', contentType: "application/json" } },
    ],
    [
      "HTML, which is sent in UTF-8",
      { body: "<p>", contentType: "text/html" },
      { body: { text: "<p>", contentType: "text/html; charset=utf-8" } },
    ],
    [
      "its own charset",
      { body: "<p>", contentType: 'text/html; Charset="utf-8"' },
      { body: { text: "<p>", contentType: 'text/html; Charset="utf-8"' } },
    ],
    [
      "a media type for JSON",
      { body: {}, contentType: "application/vnd.api+json" },
      { body: { text: "{}", contentType: "application/vnd.api+json" } },
    ],
  ])("may have %s", (_what, rejection, expected) => {
    const { rules, problems } = parsed(rejection)
    expect(problems).toEqual([])
    expect(rules[0]?.rejection).toEqual(expected)
  })

  it("may have a function as its body in code", () => {
    const body = (): string => "later"
    expect(parsed({ body }).rules[0]?.rejection).toEqual({ body })
    expect(parsed({ body, contentType: "text/html" }).rules[0]?.rejection).toEqual({
      body,
      contentType: "text/html",
    })
  })

  it.each<[unknown, string]>([
    ["later", 'rejection: "later" is not a rejection; an object with status, body, contentType'],
    [{ status: 200 }, `rejection.status: 200 is not a status for a refusal; ${STATUS}`],
    [{ status: 600 }, `rejection.status: 600 is not a status for a refusal; ${STATUS}`],
    [{ body: 5 }, `rejection.body: 5 is not a body; ${own}`],
    [{ body: null }, `rejection.body: null is not a body; ${own}`],
    [
      { body: { at: new Date(0) } },
      `rejection.body: {"at":"1970-01-01T00:00:00.000Z"} is not a body; ${own}`,
    ],
    [{ body: [undefined] }, `rejection.body: [null] is not a body; ${own}`],
    [{ body: { tries: 1e21 } }, `rejection.body: {"tries":1e+21} is not a body; ${own}`],
    [{ body: { share: 1e-7 } }, `rejection.body: {"share":1e-7} is not a body; ${own}`],
    [{ body: { left: Number.NaN } }, `rejection.body: {"left":null} is not a body; ${own}`],
    [
      { contentType: "text/html" },
      "rejection.contentType: is given without a body; a body too, or no contentType",
    ],
    [{ body: "", contentType: "html" }, `rejection.contentType: "html" is not a media type; ${TYPE}`],
    [
      { body: "", contentType: "text/html\r\nX: y" },
      `rejection.contentType: "text/html\\r\\nX: y" is not a media type; ${TYPE}`,
    ],
  ])("cannot be %j", (rejection, problem) => {
    expect(problemsOf(rejection)).toEqual([problem])
  })

  it("cannot have a body that is too large, nested too deeply, circular, or an async function", () => {
    expect(problemsOf({ body: "x".repeat(16_384) })).toEqual([])
    expect(problemsOf({ body: "x".repeat(16_385) })).toHaveLength(1)
    expect(problemsOf({ body: { a: "x".repeat(16_376) } })).toEqual([])
    expect(problemsOf({ body: { a: "x".repeat(16_377) } })).toHaveLength(1)
    expect(problemsOf({ body: nested(16) })).toEqual([])
    for (const body of [nested(17), circle, { deep: () => 1 }]) expect(problemsOf({ body })).toHaveLength(1)
    expect(problemsOf({ body: async () => "later" })).toEqual([
      `rejection.body: is an async function, but its result is needed immediately; ${own}`,
    ])
    expect(problemsOf({ body: Promise.resolve("later") })).toEqual([
      "rejection.body: is a promise; its value, with await before it",
    ])
  })
})

describe("a stored rejection", () => {
  const rejection: RuleRejection = { status: 503, body: { error: "later" }, contentType: "application/json" }

  it("uses snake_case names, and is read back unchanged", () => {
    const document = formatRuleDocument("shop", [{ ...RULE, rejection }])
    expect(document.rules[0]?.rejection).toEqual({
      status: 503,
      body: { error: "later" },
      content_type: "application/json",
    })
    expect(parseRuleDocument(document)).toMatchObject([{ rejection }])
  })

  it("cannot contain a function", () => {
    const body = (): string => "later"
    const rule: Rule = { ...RULE, rejection: { body } }
    expect(() => formatRuleDocument("shop", [rule])).toThrow(
      "rules[0].rejection.body: is a function, and functions cannot be stored; accepted: a string, an object or an array",
    )
    expect(() => parseRuleDocument({ rules: [rule] })).toThrow(InvalidRuleError)
  })

  it("causes problems that contain snake_case names", () => {
    const read = (stored: object) => () => parseRuleDocument({ rules: [{ ...RULE, rejection: stored }] })
    expect(read({ content_type: "text/html" })).toThrow(
      "rules[0].rejection.content_type: is given without a body",
    )
    expect(read({ body: "", contentType: "text/html" })).toThrow(
      'rules[0].rejection.contentType: "contentType" is not a member of a rejection; did you mean "content_type"?',
    )
  })
})
