import { describe, expect, test } from "vitest"
import type { RuleMatch } from "../rule.ts"
import { compileMatch, compilePath } from "./match.ts"
import { pathReadings } from "./path.ts"

const noField = (): undefined => undefined

function covers(pattern: string, target: string, route?: string): boolean {
  return compilePath(pattern)(pathReadings(target), route)
}

describe("the path pattern", () => {
  test.each([
    ["/login", "/login", true],
    ["/login", "/login%00", false],
    ["/login", "/login/x", false],
    ["/login", "/logins", false],
    ["/login", "/x/login", false],
    ["/login", "/", false],
    ["/login/", "/login", true],
    ["//Login", "/login", true],
    ["/", "/", true],
    ["/", "/x", false],
    ["/a%20B", "/a b", true],
    ["/a b", "/A%20b", true],
    ["/é", "/%C3%89", true],
    ["/key", "/%E2%84%AAey", true],
    ["/a\\?b", "/a%3Fb", true],
    ["/users/:id", "/users/7", true],
    ["/users/:id", "/Users/a%2Fb/", true],
    ["/users/:id", "/users", false],
    ["/users/:id", "/users/7/posts", false],
    ["/users/:id/", "/users/7", true],
    ["/:name", "/a\\b", true],
    ["/users/:id.json", "/users/7.JSON", true],
    ["/users/:id.json", "/users/7.xml", false],
    ["/flights/:from-:to", "/flights/LAX-SFO", true],
    ["/files/*", "/files", true],
    ["/files/*", "/files/", true],
    ["/files/*", "/files/a/b", true],
    ["/files/*", "/filesystem", false],
    ["/files/*path", "/files/a/b", true],
    ["/files/*path", "/files", true],
    ["/files/\\*", "/files/*", true],
    ["/files/\\*", "/files/x", false],
    ["/*", "/", true],
    ["/*", "/a/b", true],
    ["/*", "*", true],
    ["/files/*rest/raw", "/files/a/b/raw", true],
    ["/files/*rest/raw", "/files/raw", false],
    ["/files/*rest/raw", "/files///raw", true],
    ["/pre*rest", "/prefix/x", true],
    ["/pre*rest", "/other", false],
    ["/c\\+\\+", "/C++/", true],
    ["/jobs/:id\\:stop", "/jobs/5:stop", true],
    ["/files{/:version}", "/files", true],
    ["/files{/:version}", "/files/2", true],
    ["/files{/:version}", "/files/2/3", false],
    ["/x/{a}", "/x", true],
    ["/{A%62/}c", "/ab/c", true],
  ])("%j matches the path %j: %j", (pattern, target, expected) => {
    expect(covers(pattern, target)).toBe(expected)
  })

  test.each([
    ["/users/:id", "/users/:user", true],
    ["/users/:id", "/Users/:userId/", true],
    ["/users/:id", "/users/:id(\\d+)", true],
    ["/users/:id", '/users/:"user id"', true],
    ["/users/:id", "/users/:id/posts", false],
    ["/users/:id", "/users", false],
    ["/files/*", "/files/*", true],
    ["/files/*", "/files/*splat", true],
    ["/files/*", "/files/(.*)", true],
    ["/files/*", "/files/:name", false],
    ["/a%20b", "/a b", true],
  ])("%j matches a request with an unknown path and the route %j: %j", (pattern, route, expected) => {
    const covers = compilePath(pattern)
    expect(covers([], route)).toBe(expected)
    expect(covers([], route)).toBe(expected)
  })

  test("/users/:id matches the path of a request, whatever the framework's route is", () => {
    expect(covers("/users/:id", "/users/me", "/users/me")).toBe(true)
    expect(covers("/users/:id", "/users/", "/users/:name")).toBe(true)
  })

  test("/r/:id is matched correctly against more routes than fit into the cache", () => {
    const covers = compilePath("/r/:id")
    for (let index = 0; index < 2_500; index++) expect(covers([], `/r/${index}`)).toBe(false)
    expect(covers([], "/r/:other")).toBe(true)
  })

  test.each(["/users/(\\d+)", "/a/*/b", "/a?", "/:", "/{a", "/a+"])(
    "%j is rejected as invalid",
    (pattern) => {
      expect(() => compilePath(pattern)).toThrow(TypeError)
    },
  )

  test.each([
    ["/:a-:b-:c-:d", `/${"-".repeat(16_000)}`],
    ["/*a/x/*b/x/*c/y", `/${"x/".repeat(8_000)}`],
    ["/{:a}{-:b}{-:c}{-:d}", `/${"a-".repeat(8_000)}`],
  ])(
    "%j is matched against a long malicious path within a second",
    (pattern, path) => {
      expect(covers(pattern, path)).toBeTypeOf("boolean")
    },
    1_000,
  )
})

/** The only method of a request. */
interface Facts {
  readonly method?: string | undefined
}
const hasMethod = ({ method = "" }: Facts, methods: ReadonlySet<string>): boolean => methods.has(method)

describe("a match", () => {
  function matches(match: RuleMatch, method?: string, target?: string, fields: Record<string, string> = {}) {
    const paths = target === undefined ? [] : pathReadings(target)
    return compileMatch(match, (name) => () => fields[name], hasMethod)({ method }, {}, paths, undefined)
  }

  test("without members covers every request", () => {
    expect(matches({})).toBe(true)
    expect(matches({}, "GET", "/x")).toBe(true)
  })

  test.each([
    [["GET"], "GET", true],
    [["get"], "GET", true],
    [["GET"], "HEAD", true],
    [["HEAD"], "HEAD", true],
    [["HEAD"], "GET", false],
    [["POST", "PUT"], "PUT", true],
    [["POST"], "HEAD", false],
    [["POST"], undefined, false],
  ])("with the methods %j covers the method %j: %j", (methods, method, expected) => {
    expect(matches({ methods }, method)).toBe(expected)
  })

  test("with a path does not cover a request whose target is unknown", () => {
    expect(matches({ path: "/*" }, "GET", undefined)).toBe(false)
  })

  test.each([
    [{ plan: "free" }, true],
    [{ plan: "trial" }, true],
    [{ plan: "pro" }, false],
    [{ plan: "Free" }, false],
    [{}, false],
  ])("with the plans free and trial covers a request with the fields %j: %j", (fields, expected) => {
    expect(matches({ fields: { plan: ["free", "trial"] } }, "GET", "/", fields)).toBe(expected)
  })

  test("reads its fields only if the request's method matches", () => {
    const asked: string[] = []
    let text: string | undefined
    const matcher = compileMatch(
      { methods: ["POST"], fields: { plan: ["free"], tier: ["1"] } },
      (name) => () => {
        asked.push(name)
        return text
      },
      hasMethod,
    )
    matcher({ method: "GET" }, {}, [], undefined)
    expect(asked).toEqual([])
    text = "free"
    matcher({ method: "POST" }, {}, [], undefined)
    expect(asked).toEqual(["plan", "tier"])
  })

  test("covers a request only if all of its members match", () => {
    const match = { methods: ["POST"], path: "/login", fields: { plan: ["free"] } }
    expect(matches(match, "POST", "/login", { plan: "free" })).toBe(true)
    expect(matches(match, "PUT", "/login", { plan: "free" })).toBe(false)
    expect(matches(match, "POST", "/logout", { plan: "free" })).toBe(false)
    expect(matches(match, "POST", "/login", { plan: "pro" })).toBe(false)
    expect(compileMatch(match, () => noField, hasMethod)({ method: "POST" }, {}, ["/login"], undefined)).toBe(
      false,
    )
  })
})
