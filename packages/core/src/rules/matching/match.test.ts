import { describe, expect, test } from "vitest"
import type { RuleMatch } from "../rule.ts"
import { compileMatch, compilePath } from "./match.ts"
import { pathReadings } from "./path.ts"

const noField = (): undefined => undefined

function covers(pattern: string, target: string, route?: string): boolean {
  return compilePath(pattern)(pathReadings(target), route)
}

describe("a path pattern", () => {
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
  ])("%j matches the route %j of a request whose path is unknown: %j", (pattern, route, expected) => {
    const covers = compilePath(pattern)
    expect(covers([], route)).toBe(expected)
    expect(covers([], route)).toBe(expected)
  })

  test("covers a path that matches, whatever the framework's route is", () => {
    expect(covers("/users/:id", "/users/me", "/users/me")).toBe(true)
    expect(covers("/users/:id", "/users/", "/users/:name")).toBe(true)
  })

  test("matches correctly for more routes than the cache holds", () => {
    const covers = compilePath("/r/:id")
    for (let index = 0; index < 2_500; index++) expect(covers([], `/r/${index}`)).toBe(false)
    expect(covers([], "/r/:other")).toBe(true)
  })

  test.each(["/users/(\\d+)", "/a/*/b", "/a?", "/:", "/{a", "/a+"])(
    "%j is not a valid pattern",
    (pattern) => {
      expect(() => compilePath(pattern)).toThrow(TypeError)
    },
  )

  test.each([
    ["/:a-:b-:c-:d", `/${"-".repeat(16_000)}`],
    ["/*a/x/*b/x/*c/y", `/${"x/".repeat(8_000)}`],
    ["/{:a}{-:b}{-:c}{-:d}", `/${"a-".repeat(8_000)}`],
  ])(
    "%j is compared with a long hostile path without delay",
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
  ])("of methods %j covers %j: %j", (methods, method, expected) => {
    expect(matches({ methods }, method)).toBe(expected)
  })

  test("of a path does not cover a request whose target is unknown", () => {
    expect(matches({ path: "/*" }, "GET", undefined)).toBe(false)
  })

  test.each([
    [{ plan: "free" }, true],
    [{ plan: "trial" }, true],
    [{ plan: "pro" }, false],
    [{ plan: "Free" }, false],
    [{}, false],
  ])("of fields covers %j: %j", (fields, expected) => {
    expect(matches({ fields: { plan: ["free", "trial"] } }, "GET", "/", fields)).toBe(expected)
  })

  test("reads only the fields that it names", () => {
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
