import { describe, expect, it } from "vitest"
import { InvalidOptionError } from "../../ground/errors.ts"
import { type GuardedRoute, namedAfter, RouteGuards } from "./route-guards.ts"

interface Made {
  readonly rule: object
  readonly name: string
}

const RULE = { limit: 5, window: "1 minute" }
const make = (rule: object, name: string): Made => ({ rule, name })

function join(guards: RouteGuards<Made>, written: unknown, route: GuardedRoute): Made {
  return guards.join(written, route, make)
}

/** The problems with it, each as one text. */
function problemsOf(attempt: () => unknown): readonly string[] {
  try {
    attempt()
  } catch (error) {
    if (!(error instanceof InvalidOptionError)) throw error
    return error.problems.map(({ path, message, accepted }) => `${path}: ${message}; ${accepted}`)
  }
  return []
}

describe("the guards of routes", () => {
  it("are one for each counter, by the rule as it is written", () => {
    const guards = new RouteGuards<Made>()
    const own = { ...RULE, hook: "late", name: "own" }
    const a = join(guards, own, { label: "POST /a", besides: ["hook"] })
    expect(a).toEqual({ rule: { ...RULE, name: "own" }, name: "own" })
    const b = join(guards, RULE, { label: "GET /b" })
    expect(b).toEqual({ rule: RULE, name: "GET /b" })
    const same = { label: "HEAD /b", counter: "GET /b", besides: ["hook"] }
    expect(join(guards, { ...RULE, hook: "other" }, same)).toBe(b)
    expect(guards.all).toEqual([a, b])
  })

  it("are one for each group, which is no route of that name", () => {
    const guards = new RouteGuards<Made>()
    const group = join(guards, { ...RULE, group: "auth" }, { label: "POST /a" })
    expect(group).toEqual({ rule: RULE, name: "auth" })
    expect(join(guards, { group: "auth", ...RULE }, { label: "POST /b" })).toBe(group)
    expect(problemsOf(() => join(guards, RULE, { label: "auth" }))).toEqual([
      "name: 'auth' is the rule of route POST /a; another name, or the same `group` on both routes, which then share one counter",
    ])
    expect(guards.all).toEqual([group])
  })

  it.each<[string, unknown, string]>([
    ["nothing", undefined, "at: undefined is not a rule; false, or { limit: 5, "],
    ["null", null, "at: null is not a rule; false, or { limit: 5, "],
    ["true", true, "at: true is not a rule; false, or { limit: 5, "],
    ["a text", "5/m", "at: '5/m' is not a rule; false, or { limit: 5, "],
    ["an empty group", { ...RULE, group: "" }, "at.group: '' is not a group; a non-empty text"],
    ["a number for a group", { ...RULE, group: 1 }, "at.group: 1 is not a group; a non-empty text"],
    [
      "another rule for its group",
      { ...RULE, limit: 4, group: "g" },
      "at: is another rule for group 'g'; the rule of route GET /g, or another group",
    ],
    [
      "another rule for its route",
      { ...RULE, limit: 4 },
      "at: is another rule for the same route; the rule of route GET /a, or another group",
    ],
    ["a name that is taken", { ...RULE, name: "g", group: "h" }, "at.name: 'g' is the rule of route GET /g;"],
  ])("refuse %s, and know nothing of it", (_what, written, problem) => {
    const guards = new RouteGuards<Made>()
    const made = [
      join(guards, { ...RULE, group: "g" }, { label: "GET /g" }),
      join(guards, RULE, { label: "GET /a" }),
    ]
    const [told, ...others] = problemsOf(() => join(guards, written, { label: "GET /a", path: "at" }))
    expect(told).toContain(problem)
    expect(others).toEqual([])
    expect(guards.all).toEqual(made)
  })

  it("say where a rule is written that cannot be made, and know nothing of it", () => {
    const guards = new RouteGuards<Made>()
    const problems = [
      { path: "limit", message: "is missing", accepted: "a limit" },
      { path: "", message: "is wrong", accepted: "a right one" },
    ]
    const failing = (error: Error) => (): never => {
      throw error
    }
    const route = { label: "GET /a", path: "route GET /a" }
    expect(problemsOf(() => guards.join(RULE, route, failing(new InvalidOptionError(problems))))).toEqual([
      "route GET /a.limit: is missing; a limit",
      "route GET /a: is wrong; a right one",
    ])
    const other = new Error("no room")
    expect(() => guards.join(RULE, route, failing(other))).toThrow(other)
    expect(join(guards, { ...RULE, limit: 4 }, route)).toMatchObject({ rule: { limit: 4 } })
  })

  it("forget one that has been closed, so that its route may have another rule", () => {
    const guards = new RouteGuards<Made>()
    const [a, b] = [join(guards, RULE, { label: "GET /a" }), join(guards, RULE, { label: "GET /b" })]
    guards.delete(a)
    expect(guards.all).toEqual([b])
    expect(join(guards, { ...RULE, limit: 4 }, { label: "GET /a" })).not.toBe(a)
  })
})

describe("the name of a route's rule", () => {
  it.each(["GET /users/:id", " !#$[]^~", "x".repeat(64)])("is the text where it may be one: %s", (text) => {
    expect(namedAfter(text)).toBe(text)
  })

  const long = "GET /".padEnd(80, "x")
  it.each([
    ["GET /sch?n~", "GET /schön"],
    ["GET /:id(^??d+$)~", 'GET /:id(^"\\d+$)'],
    [`${"GET /".padEnd(47, "x")}~`, long],
  ])("starts with what is left of it, %s, and tells it from others by a hash", (start, text) => {
    const name = namedAfter(text)
    expect(name.slice(0, -16)).toBe(start)
    expect(name.slice(-16)).toMatch(/^[\w-]{16}$/)
    expect(name.length).toBeLessThanOrEqual(64)
    expect(namedAfter(`${text}y`)).not.toBe(name)
    expect(namedAfter(text)).toBe(name)
  })
})
