import { expect, it } from "vitest"
import { hasMethod } from "./method.ts"
import type { RequestFacts } from "./request.ts"

const has = (facts: RequestFacts, method: string): boolean => hasMethod(facts, new Set([method]))

it.each<[string, RequestFacts]>([
  ["the header X-HTTP-Method-Override", { headers: { "x-http-method-override": "DELETE" } }],
  ["the header X-HTTP-Method", { headers: { "x-http-method": "delete" } }],
  ["the header X-Method-Override", { headers: { "x-method-override": " Delete " } }],
  ["a repeated header, as Node joins it", { headers: { "x-http-method-override": "PUT, DELETE" } }],
  ["an array of header lines", { headers: { "x-http-method-override": ["PUT", "DELETE"] } }],
  ["the query", { url: "/item?a=1&_method=DELETE" }],
  ["an encoded query", { url: "/item?%5Fmethod=D%45LETE#x" }],
  ["a repeated parameter of the query", { url: "/item?_method=PUT&_method=delete" }],
  ["the parsed body", { body: { _method: "DELETE" } }],
  ["an array in the parsed body", { body: { _method: ["DELETE"] } }],
])("a POST that specifies DELETE in %s has both methods", (_where, facts) => {
  const posted = { method: "POST", ...facts }
  expect([has(posted, "DELETE"), has(posted, "POST"), has(posted, "PATCH")]).toEqual([true, true, false])
  // In this case, an override has already run before the limiter.
  const overridden = { ...facts, method: "DELETE" }
  expect([has(overridden, "DELETE"), has(overridden, "POST"), has(overridden, "PATCH")]).toEqual([
    true,
    true,
    false,
  ])
})

it.each<[string, RequestFacts]>([
  [
    "a header of a GET, which overrides do not change",
    { method: "GET", headers: { "x-http-method-override": "DELETE" } },
  ],
  ["the path of a GET", { method: "GET", url: "/_method=DELETE?a=%20" }],
  ["a header of another name", { method: "POST", headers: { "x-method": "DELETE" } }],
  ["an empty header", { method: "POST", headers: { "x-http-method-override": "" } }],
  ["an inherited member of the body", { method: "POST", body: Object.create({ _method: "DELETE" }) }],
  ["a member that is not a string", { method: "POST", body: { _method: { DELETE: 1 } } }],
  ["an unknown method", { headers: { "x-http-method-override": "DELETE" } }],
  [
    "facts of wrong types",
    { method: "POST", url: 7, headers: null, body: "_method" } as unknown as RequestFacts,
  ],
])("a request does not get the method DELETE from %s", (_what, facts) => {
  expect(has(facts, "DELETE")).toBe(false)
})

it.each(["GET", "HEAD"])(
  "a %s that specifies DELETE in the query has both methods, and not POST",
  (method) => {
    for (const url of ["/?_method=DELETE", "/?a=1&%5Fmethod=delete"]) {
      const facts = { method, url }
      expect(["DELETE", method, "POST"].map((name) => has(facts, name))).toEqual([true, true, false])
    }
  },
)

it("the methods that a query specifies are found in linear time", () => {
  const url = "?".repeat(1_000_000)
  expect(has({ method: "GET", url }, "DELETE")).toBe(false)
})

it("a request has both its original and its current method, regardless of case", () => {
  const facts = { method: "get", originalMethod: "Purge" }
  expect(["GET", "PURGE", "POST"].map((method) => has(facts, method))).toEqual([true, true, false])
  expect(has({}, "GET")).toBe(false)
})

it("a query parameter other than _method does not change the method of a request", () => {
  expect(has({ method: "PUT", url: "/?method=POST" }, "POST")).toBe(false)
})
