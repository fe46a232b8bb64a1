import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { compileClientAddress } from "./client-address.ts"
import { compileClientGroup } from "./client-group.ts"
import { compileField, type FieldContext, isBuiltInField } from "./field.ts"
import type { FieldReader, RequestFacts } from "./request.ts"

/** Creates a context that records the calls of its callbacks. */
function context(matchedPath?: string): FieldContext & { readonly told: unknown[][] } {
  const told: unknown[][] = []
  return {
    told,
    matchedPath,
    clientGroup: compileClientGroup(
      compileClientAddress({ trustedProxies: 0 }, () => expect.unreachable()),
      {},
    ),
    onClientChosen: (name) => told.push(["client-chosen", name]),
    onBodyMissing: (name) => told.push(["body-missing", name]),
    onRouteMissing: () => told.push(["route-missing"]),
    onExtractorFailed: (name, error) => told.push(["failed", name, error]),
  }
}

function read(field: string, facts: unknown): string | undefined {
  const known = context()
  const text = compileField(field, known)(facts as RequestFacts, undefined)
  expect(known.told.filter(([what]) => what === "failed")).toEqual([])
  return text
}

describe("the value of a field", () => {
  it.each<[unknown, string | undefined]>([
    ["5", "5"],
    [5, "5"],
    [5.0, "5"],
    [-0, "0"],
    [0, "0"],
    [1.5, "1.5"],
    [7n, "7"],
    [true, "true"],
    [false, "false"],
    [" ", " "],
    ["Ünï", "Ünï"],
    ["", undefined],
    [Number.NaN, undefined],
    [Number.POSITIVE_INFINITY, undefined],
    [null, undefined],
    [undefined, undefined],
    [[], undefined],
    [["5"], undefined],
    [["5", "6"], undefined],
    [{}, undefined],
    [Object.create(null), undefined],
    [{ toString: () => "5" }, undefined],
    [Symbol("5"), undefined],
    [() => "5", undefined],
    [new Date(0), undefined],
  ])("%o is read as %j", (value, text) => {
    expect(read("body:user", { body: { user: value } })).toBe(text)
    expect(read("param:user", { params: { user: value } })).toBe(text)
    expect(read("query:user", { query: { user: value } })).toBe(text)
    expect(read("cookie:user", { cookies: { user: value } })).toBe(text)
  })
})

describe("the field ip", () => {
  it.each([
    ["192.0.2.7", "192.0.2.7"],
    ["::ffff:192.0.2.7", "192.0.2.7"],
    ["2001:DB8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    [undefined, undefined],
    ["unknown", undefined],
  ])("of the address %j is %j", (remoteAddress, text) => {
    expect(read("ip", { remoteAddress })).toBe(text)
  })
})

describe("the field service", () => {
  it("has the same value for every request", () => {
    expect(read("service", {})).toBe("")
    expect(read("service", { body: { service: "mine" }, query: { service: "mine" } })).toBe("")
  })
})

describe("the field method", () => {
  it.each([
    ["GET", "GET"],
    ["HEAD", "GET"],
    ["head", "GET"],
    ["get", "GET"],
    ["Post", "POST"],
    ["PROPFIND", "PROPFIND"],
    ["", undefined],
    [undefined, undefined],
    [7, undefined],
  ])("of the method %j is %j", (method, text) => {
    expect(read("method", { method })).toBe(text)
  })
})

describe("the field route", () => {
  it.each([
    ["/users/:id", "/u/*", "/users/:id"],
    ["/users/:id", undefined, "/users/:id"],
    [undefined, "/u/*", "/u/*"],
    ["", "/u/*", "/u/*"],
    [/^\/u/, "/u/*", "/u/*"],
  ])("of the route %j with the matched path %j is %j", (route, matchedPath, text) => {
    const known = context(matchedPath)
    const facts = { route, url: "/users/7" } as unknown as RequestFacts
    expect(compileField("route", known)(facts, undefined)).toBe(text)
    expect(known.told).toEqual([])
  })

  it("is never the raw path, and an unknown route is reported once", () => {
    const known = context()
    const reader = compileField("route", known)
    expect(reader({ url: "/users/7" }, undefined)).toBeUndefined()
    expect(reader({ url: "/users/8" }, undefined)).toBeUndefined()
    expect(reader({ route: "/users/:id" }, undefined)).toBe("/users/:id")
    expect(known.told).toEqual([["route-missing"]])
  })
})

describe("a header field", () => {
  it.each<[string, unknown, string | undefined]>([
    ["header:x-api-key", { "x-api-key": "k1" }, "k1"],
    ["header:X-API-Key", { "x-api-key": "k1" }, "k1"],
    ["header:x-api-key", { "x-api-key": ["k1"] }, "k1"],
    ["header:x-api-key", { "x-api-key": ["k1", "k2"] }, undefined],
    ["header:x-api-key", { "x-api-key": [] }, undefined],
    ["header:x-api-key", { "x-api-key": [["k1"]] }, undefined],
    ["header:x-api-key", { "x-api-key": "k1, k2" }, "k1, k2"],
    ["header:x-api-key", { "x-api-key": "" }, undefined],
    ["header:x-api-key", {}, undefined],
    ["header:x-api-key", undefined, undefined],
    ["header:constructor", {}, undefined],
    ["header:__proto__", {}, undefined],
    ["header:host", { host: "a.example" }, "a.example"],
    ["header:Host", { ":authority": "a.example" }, "a.example"],
    ["header:host", { ":authority": "a.example", host: "b.example" }, "a.example"],
    ["header:host", { ":authority": ["a.example", "b.example"], host: "b.example" }, undefined],
    ["header:hosts", { ":authority": "a.example" }, undefined],
    ["host", { ":authority": "a.example" }, "a.example"],
  ])("%j of the headers %j is %j", (field, headers, text) => {
    expect(read(field, { headers })).toBe(text)
  })
})

describe("a query field", () => {
  it.each<[string, object, string | undefined]>([
    ["query:page", { url: "/list?page=2" }, "2"],
    ["query:page", { url: "/list?a=1&page=2#page=3" }, "2"],
    ["query:page", { url: "http://host/list?page=2" }, "2"],
    ["query:page", { url: "/list?page=a%20b+c" }, "a b c"],
    ["query:page", { url: "/list?page=%zz" }, "%zz"],
    ["query:page", { url: "/list?q=a?page=3&page=2" }, "2"],
    ["query:page", { url: "/list?page=2&page=3" }, undefined],
    ["query:page", { url: "/list?page=2&page=2" }, undefined],
    ["query:page", { url: "/list?page=" }, undefined],
    ["query:page", { url: "/list#?page=2" }, undefined],
    ["query:page", { url: "/list" }, undefined],
    ["query:page", { url: "/list&page=2" }, undefined],
    ["query:page", { url: 7 }, undefined],
    ["query:page", {}, undefined],
    ["query:page", { query: { page: "2" }, url: "/list?page=3" }, "2"],
    ["query:page", { query: {}, url: "/list?page=3" }, undefined],
    ["query:page", { query: { page: ["2", "3"] } }, undefined],
    ["query:page", { query: Object.create({ page: "2" }) }, undefined],
    ["query:constructor", { query: {} }, undefined],
    ["query:__proto__", { query: JSON.parse('{"__proto__":"x"}') }, "x"],
    ["query:toString", { url: "/list" }, undefined],
  ])("%j of the request %j is %j", (field, facts, text) => {
    expect(read(field, facts)).toBe(text)
  })
})

describe("a body field", () => {
  it.each<[string, unknown, string | undefined]>([
    ["body:user", { user: "ann" }, "ann"],
    ["body:user.email", { user: { email: "a@b.c" } }, "a@b.c"],
    ["body:users.0.id", { users: [{ id: 7 }] }, "7"],
    ["body:user.email", { user: "ann" }, undefined],
    ["body:user.email", { user: null }, undefined],
    ["body:user.length", { user: "ann" }, undefined],
    ["body:user", null, undefined],
    ["body:user", "user=ann", undefined],
    ["body:user", Buffer.from("ann"), undefined],
    ["body:user", Object.create({ user: "ann" }), undefined],
    ["body:constructor.name", {}, undefined],
    ["body:__proto__.user", { user: "ann" }, undefined],
    ["body:a.b.c.d.e.f.g.h", { a: { b: { c: { d: { e: { f: { g: { h: 1 } } } } } } } }, "1"],
    ["body:a.b.c.d.e.f.g.h.i", { a: { b: { c: { d: { e: { f: { g: { h: { i: 1 } } } } } } } } }, undefined],
  ])("%j of the body %j is %j", (field, body, text) => {
    expect(read(field, { body })).toBe(text)
  })

  it("of a circular body is found or missing, without an endless loop", () => {
    const body: Record<string, unknown> = { id: 1 }
    body.self = body
    expect(read("body:self.self.self.id", { body })).toBe("1")
    expect(read("body:self.self", { body })).toBeUndefined()
  })

  it.each<[string, RequestFacts, boolean]>([
    ["with a length", { headers: { "content-length": "7" } }, true],
    ["in chunks", { headers: { "transfer-encoding": "chunked" } }, true],
    ["of unknown length", {}, true],
    ["that is not there", { headers: {} }, false],
    ["that is empty", { headers: { "content-length": "0" } }, false],
    ["that was parsed", { headers: { "content-length": "4" }, body: null }, false],
  ])("is missing for a body %s (%j); a missing body parser is reported: %j", (_what, facts, expected) => {
    const known = context()
    const reader = compileField("body:user", known)
    expect([reader(facts, undefined), reader(facts, undefined)]).toEqual([undefined, undefined])
    expect(known.told).toEqual(expected ? [["body-missing", "body:user"]] : [])
  })
})

describe("a param field", () => {
  it.each<[unknown, string | undefined]>([
    [{ id: "7" }, "7"],
    [{ id: ["a", "b"] }, undefined],
    [Object.create({ id: "7" }), undefined],
    [{}, undefined],
    [undefined, undefined],
    ["id", undefined],
  ])("param:id of the parameters %j is %j", (params, text) => {
    expect(read("param:id", { params })).toBe(text)
  })
})

describe("a cookie field", () => {
  it.each<[string, object, string | undefined]>([
    ["cookie:sid", { cookies: { sid: "s1" }, headers: { cookie: "sid=s2" } }, "s1"],
    ["cookie:sid", { cookies: {}, headers: { cookie: "sid=s2" } }, undefined],
    ["cookie:sid", { cookies: Object.create({ sid: "s1" }) }, undefined],
    ["cookie:sid", { headers: { cookie: "a=b; sid=s%202; c=d" } }, "s 2"],
    ["cookie:sid", { headers: { cookie: ["a=b", "sid=s2"] } }, "s2"],
    ["cookie:sid", { headers: { cookie: "sid=s1; sid=s2" } }, "s1"],
    ["cookie:sid", { headers: { cookie: "sid=%zz" } }, "%zz"],
    ["cookie:sid", { headers: { cookie: "sid=" } }, undefined],
    ["cookie:sid", { headers: { cookie: "" } }, undefined],
    ["cookie:sid", { headers: { cookie: 7 } }, undefined],
    ["cookie:sid", { headers: {} }, undefined],
    ["cookie:sid", {}, undefined],
    ["cookie:__proto__", { headers: { cookie: "a=b" } }, undefined],
    ["cookie:constructor", { headers: { cookie: "a=b" } }, undefined],
  ])("%j of the request %j is %j", (field, facts, text) => {
    expect(read(field, facts)).toBe(text)
  })
})

describe("a bare name", () => {
  const everywhere = {
    params: { user_id: "param" },
    query: { user_id: "query" },
    body: { user_id: "body" },
    headers: { user_id: "header" },
  }
  it.each<[object, string | undefined]>([
    [everywhere, "param"],
    [{ ...everywhere, params: {} }, "query"],
    [{ ...everywhere, params: undefined, query: undefined, url: "/?user_id=url" }, "url"],
    [{ ...everywhere, params: { user_id: "" }, query: { user_id: ["1", "2"] } }, "body"],
    [{ headers: everywhere.headers }, "header"],
    [{}, undefined],
  ])("without an extractor is the first value in the parts of the request %j: %j", (facts, text) => {
    expect(read("user_id", facts)).toBe(text)
  })

  it("is reported once, because clients can choose its value", () => {
    const known = context()
    const reader = compileField("User_Id", known)
    expect(known.told).toEqual([["client-chosen", "User_Id"]])
    expect(reader({ headers: { user_id: "7" } }, undefined)).toBe("7")
    expect(known.told).toHaveLength(1)
  })
})

describe("every field", () => {
  it.each(["method", "route", "ip", "header:a", "query:a", "body:a", "param:a", "cookie:a", "a"])(
    "is missing if a getter throws, and the error is reported once: %s",
    (field) => {
      const known = context()
      const error = new Error("malformed")
      const broken = new Proxy(
        {},
        {
          get: () => {
            throw error
          },
        },
      )
      const reader = compileField(field, known)
      expect([reader(broken, undefined), reader(broken, undefined)]).toEqual([undefined, undefined])
      expect(known.told.filter(([what]) => what === "failed")).toEqual([["failed", field, error]])
    },
  )

  it("is a non-empty string or undefined for any input, and never throws", () => {
    const fields = ["ip", "method", "route", "header:a", "query:a", "body:a.b", "param:a", "cookie:a", "a"]
    const readers: FieldReader[] = fields.map((field) => compileField(field, context()))
    const holder = fc.oneof(fc.record({ a: fc.anything() }), fc.anything())
    const facts = fc.record({
      method: fc.anything(),
      url: fc.anything(),
      route: fc.anything(),
      headers: holder,
      query: holder,
      params: holder,
      body: holder,
      cookies: holder,
      remoteAddress: fc.anything(),
    })
    fc.assert(
      fc.property(facts, (given) => {
        for (const reader of readers)
          expect(reader(given as RequestFacts, undefined) ?? "missing").not.toBe("")
      }),
    )
  })
})

describe("field names", () => {
  it("show whether a field is built in", () => {
    expect(["ip", "service", "method", "route", "header:x", "body:a.b"].map(isBuiltInField)).not.toContain(
      false,
    )
    expect(["user_id", "plan", "IP", "header"].map(isBuiltInField)).not.toContain(true)
  })

  it("that no reader supports are rejected when the rule is compiled", () => {
    expect(() => compileField("session:id", context())).toThrow('"session:id" is not a field')
  })
})
