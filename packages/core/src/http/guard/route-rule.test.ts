import { afterEach, describe, expect, it } from "vitest"
import { InvalidOptionError } from "../../ground/errors.ts"
import { createGuard } from "./create-guard.ts"
import type { Guard } from "./guard.ts"
import { type GuardedRoute, namedAfter, readRouteRule } from "./route-rule.ts"

const RULE = { limit: 5, window: "1 minute" }
const opened: Guard<object>[] = []

function open(): Guard<object> {
  const guard = createGuard<object>(RULE)
  opened.push(guard)
  return guard
}
afterEach(async () => {
  for (const guard of opened.splice(0)) await guard.close()
})

/** Returns the name of the rule that a route's guard counts by. */
async function nameOf(guard: Guard<object>): Promise<string> {
  return (await guard.check({ remoteAddress: "192.0.2.1" }, {})).decision.policy
}

/** Formats each problem of the thrown error as a string. */
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
  it("are one object for routes with the same counter and rule", async () => {
    const guard = open()
    const own = { ...RULE, hook: "late", name: "own" }
    expect(await nameOf(guard.forRoute(own, { label: "POST /a", besides: ["hook"] }))).toBe("own")
    const b = guard.forRoute(RULE, { label: "GET /b" })
    expect(await nameOf(b)).toBe("GET /b")
    const same = { label: "HEAD /b", counter: "GET /b", besides: ["hook"] }
    expect(guard.forRoute({ ...RULE, hook: "other" }, same)).toBe(b)
    expect(guard.forRoute({ limit: 5, window: 60_000 }, same)).toBe(b)
  })

  it("are one object for a group, whose name no other route may use", async () => {
    const guard = open()
    const group = guard.forRoute({ ...RULE, group: "auth" }, { label: "POST /a" })
    expect(await nameOf(group)).toBe("auth")
    expect(guard.forRoute({ group: "auth", ...RULE }, { label: "POST /b" })).toBe(group)
    expect(problemsOf(() => guard.forRoute(RULE, { label: "auth" }))).toEqual([
      "name: 'auth' is already the name of the rule of POST /a; another name, or the same `group` on both routes, so that they share one counter",
    ])
  })

  it.each<[string, unknown, string]>([
    ["nothing", undefined, "at: undefined is not a rule; false, or a rule such as { limit: 5, "],
    ["null", null, "at: null is not a rule; false, or a rule such as { limit: 5, "],
    ["true", true, "at: true is not a rule; false, or a rule such as { limit: 5, "],
    ["a string", "5/m", "at: '5/m' is not a rule; false, or a rule such as { limit: 5, "],
    ["an empty group", { ...RULE, group: "" }, "at.group: '' is not a group; a non-empty string"],
    ["a number for a group", { ...RULE, group: 1 }, "at.group: 1 is not a group; a non-empty string"],
    [
      "a string for onRejected",
      { ...RULE, onRejected: "no" },
      "at.onRejected: 'no' is not a function; (request, rejection, decision, response) => a rejection, ",
    ],
    ["a name that is a symbol", { ...RULE, name: Symbol("a") }, "at.name: a is not a name; "],
    ["a list for a name", { ...RULE, name: [Symbol("a")] }, "at.name: "],
    [
      "another rule for its group",
      { ...RULE, limit: 4, group: "g" },
      "at: differs from the existing rule for group 'g'; the same rule as GET /g, or another group",
    ],
    [
      "another rule for its route",
      { ...RULE, limit: 4 },
      "at: differs from the existing rule for the same route; the same rule as GET /a, or another group",
    ],
    [
      "another rule of another name for its route",
      { ...RULE, limit: 4, name: "other" },
      "at: differs from the existing rule for the same route; the same rule as GET /a, or another group",
    ],
    [
      "a name that is taken",
      { ...RULE, name: "g", group: "h" },
      "at.name: 'g' is already the name of the rule of GET /g;",
    ],
  ])("reject %s as a rule, without side effects", (_what, written, problem) => {
    const guard = open()
    const group = guard.forRoute({ ...RULE, group: "g" }, { label: "GET /g" })
    const route = guard.forRoute(RULE, { label: "GET /a" })
    const [told, ...others] = problemsOf(() => guard.forRoute(written, { label: "GET /a", path: "at" }))
    expect(told).toContain(problem)
    expect(others).toEqual([])
    expect(guard.forRoute({ ...RULE, group: "g" }, { label: "GET /g" })).toBe(group)
    expect(guard.forRoute(RULE, { label: "GET /a" })).toBe(route)
    guard.forRoute({ ...RULE, limit: 4 }, { label: "GET /other", path: "other" })
  })

  it("reject false if only the route's own rule is checked", () => {
    const alone = { label: "a hook", path: "hook()", isAlone: true }
    expect(problemsOf(() => open().forRoute(false, alone))).toEqual([
      'hook(): false is not a rule; a rule such as { limit: 5, window: "1 minute" }',
    ])
  })

  it("report the place of an invalid rule, and also suggest the members of routes", () => {
    const guard = open()
    const route: GuardedRoute = { label: "GET /a", path: "route GET /a", besides: ["hook"] }
    const written = { limit: 0, window: "1 minute", grop: "g", hok: "late", onReject: 1, xyz: 1 }
    const [grop, hok, limit, onReject, xyz, ...others] = [
      ...problemsOf(() => guard.forRoute(written, route)),
    ].sort()
    expect(grop).toMatch(/"grop" is not a member of a rule; did you mean "group"\?;/)
    expect(hok).toMatch(/^route GET \/a\.hok: "hok" is not a member of a rule; did you mean "hook"\?;/)
    expect(onReject).toMatch(/"onReject" is not a member of a rule; did you mean "onRejected"\?;/)
    expect(limit).toMatch(/^route GET \/a\.limit: /)
    expect(xyz).toMatch(/^route GET \/a\.xyz: "xyz" is not a member of a rule; the nearest is "per"/)
    expect(others).toEqual([])
    const other = new Error("no room")
    const fail = (): never => {
      throw other
    }
    expect(() => readRouteRule(RULE, route, fail)).toThrow(other)
  })

  it("can be replaced with another rule after they are closed", async () => {
    const guard = open()
    const [a, b] = [guard.forRoute(RULE, { label: "GET /a" }), guard.forRoute(RULE, { label: "GET /b" })]
    await a.close()
    expect(guard.forRoute(RULE, { label: "GET /b" })).toBe(b)
    expect(guard.forRoute({ ...RULE, limit: 4 }, { label: "GET /a" })).not.toBe(a)
  })
})

describe("the name of a route's rule", () => {
  it.each(["GET /users/:id", " !#$[]^~", "x".repeat(64)])(
    "is the route's label if the label is a valid name: %s",
    (text) => {
      expect(namedAfter(text)).toBe(text)
    },
  )

  const long = "GET /".padEnd(80, "x")
  it.each([
    ["GET /sch?n~", "GET /schön"],
    ["GET /:id(^??d+$)~", 'GET /:id(^"\\d+$)'],
    [`${"GET /".padEnd(47, "x")}~`, long],
  ])("starts with %s and ends with a unique hash if the label is not a valid name", (start, text) => {
    const name = namedAfter(text)
    expect(name.slice(0, -16)).toBe(start)
    expect(name.slice(-16)).toMatch(/^[\w-]{16}$/)
    expect(name.length).toBeLessThanOrEqual(64)
    expect(namedAfter(`${text}y`)).not.toBe(name)
    expect(namedAfter(text)).toBe(name)
  })
})

describe("a guard without some rules", () => {
  const rules = ["a", "b"].map((name) => ({ ...RULE, name, field: "ip" }))
  const checked = async (guard: Guard<object>) => {
    const { decision } = await guard.check({ remoteAddress: "192.0.2.1" }, {})
    return decision.checks.map(({ policy }) => policy)
  }

  it("checks all other rules, and ignores unknown names", async () => {
    const guard = createGuard<object>({ rules })
    opened.push(guard)
    expect(await checked(guard.without(["b", "unknown"]))).toEqual(["a"])
    expect(await checked(guard.without(["a"]).without(["b"]))).toEqual([])
    expect(await checked(guard)).toEqual(["a", "b"])
  })

  it("keeps the rule and the response of its route", async () => {
    const guard = createGuard<object>({ rules })
    opened.push(guard)
    const onRejected = () => ({ status: 420, headers: [], body: "" })
    const route = guard.forRoute({ ...RULE, limit: 1, onRejected }, { label: "own" }).without(["a"])
    expect(await checked(route)).toEqual(["own", "b"])
    const request = {}
    const outcome = await route.check({ remoteAddress: "192.0.2.1" }, request)
    expect((await route.answer(outcome, request, {}))?.status).toBe(420)
    const alone = guard.forRoute({ ...RULE, name: "alone" }, { label: "alone", isAlone: true })
    expect(await checked(alone.without(["a"]))).toEqual(["alone"])
  })
})
