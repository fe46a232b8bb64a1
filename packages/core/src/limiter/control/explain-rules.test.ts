import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { RequestFacts } from "../../request/request.ts"
import type { RateRule, Rule } from "../../rules/rule.ts"
import { createLimiter } from "../create-limiter.ts"
import type { RequestLimiter } from "../request-limiter.ts"

const LOGGER = { warn() {}, error() {} }
const RULE = { name: "r", field: "ip", limit: 10, window: "1 minute" } satisfies Rule
const CLIENT = { remoteAddress: "192.0.2.7" }

async function explained(rule: Partial<RateRule<RequestFacts>>, request: RequestFacts = CLIENT) {
  const limiter = createLimiter<RequestFacts>({ rules: [{ ...RULE, ...rule }], logger: LOGGER })
  const [explanation] = await limiter.explain(request)
  await limiter.close()
  return explanation
}

describe("explain", () => {
  it("returns the counter, the units and the refusal of a rule that applies", async () => {
    const admitted = await explained({ cost: 3 })
    expect(admitted).toMatchObject({
      ...{ policy: "r", applies: true, shadow: false, cost: 3, mismatches: [] },
      counter: { partition: "192.0.2.7", policy: { name: "r", limit: 10, windowMs: 60_000 } },
    })
    expect(admitted).not.toHaveProperty("refusal")
    const denied = await explained({ deny: ["192.0.2.0/24"], shadow: true })
    expect(denied).toMatchObject({ applies: true, shadow: true, refusal: "denied", counter: {} })
    const missing = await explained({ field: "header:x-key", onMissing: "deny" })
    expect(missing).toMatchObject({ applies: true, refusal: "missing-field" })
    expect(missing).not.toHaveProperty("counter")
  })

  it("returns the counter of blocks for a rule with a penalty", async () => {
    expect(await explained({})).not.toHaveProperty("penalty")
    const found = await explained({ penalty: { refusals: 3, for: "1 hour" } })
    expect(found?.penalty).toMatchObject({ partition: "192.0.2.7", policy: { algorithm: "penalty" } })
    expect(found?.penalty?.policy.counter).not.toBe(found?.counter?.policy.counter)
  })

  it.each<[string, Partial<RateRule<RequestFacts>>, RequestFacts, object[]]>([
    [
      "its methods",
      { match: { methods: ["POST"] } },
      { ...CLIENT, method: "GET" },
      [{ member: "match.methods" }],
    ],
    ["its path", { match: { path: "/login" } }, { ...CLIENT, url: "/" }, [{ member: "match.path" }]],
    [
      "a field with another value",
      { match: { fields: { "header:x-plan": ["free"] } } },
      { ...CLIENT, headers: { "x-plan": "pro" } },
      [{ member: "match.fields", field: "header:x-plan", value: "pro" }],
    ],
    [
      "a missing field",
      { match: { fields: { "header:x-plan": ["free"] } } },
      CLIENT,
      [{ member: "match.fields", field: "header:x-plan" }],
    ],
    [
      "several parts of its match",
      { match: { methods: ["POST"], path: "/login", fields: { ip: ["192.0.2.7"] } } },
      { ...CLIENT, method: "GET", url: "/x" },
      [{ member: "match.methods" }, { member: "match.path" }],
    ],
    ["its function", { match: { when: () => false } }, CLIENT, [{ member: "match.when" }]],
    [
      "its allow list, with the whole address",
      { allow: ["2001:db8::7"] },
      { remoteAddress: "2001:db8::7" },
      [{ member: "allow", field: "ip", value: "2001:db8::7" }],
    ],
    [
      "onMissing, with the field that is missing",
      { field: ["ip", "header:x-key"], onMissing: "skip" },
      CLIENT,
      [{ member: "onMissing", field: "header:x-key" }],
    ],
    [
      "onMissing although its function returns true",
      { field: "header:x-key", onMissing: "skip", match: { when: () => true } },
      CLIENT,
      [{ member: "onMissing", field: "header:x-key" }],
    ],
    ["its limit function", { limit: () => Number.POSITIVE_INFINITY }, CLIENT, [{ member: "limit" }]],
    [
      "a preflight",
      {},
      { ...CLIENT, method: "OPTIONS", headers: { origin: "a", "access-control-request-method": "GET" } },
      [{ member: "preflight" }],
    ],
    [
      "the path of a rule for preflights",
      { match: { methods: ["OPTIONS"], path: "/login" } },
      {
        ...{ ...CLIENT, method: "OPTIONS", url: "/" },
        headers: { origin: "a", "access-control-request-method": "GET" },
      },
      [{ member: "match.path" }],
    ],
    [
      "the fields of a part of a request",
      {},
      { ...CLIENT, onlyFields: new Set(["user_id"]) },
      [{ member: "onlyFields", field: "ip" }],
    ],
  ])("returns %s as the reason why a rule does not apply", async (_, rule, request, mismatches) => {
    const found = await explained(rule, request)
    expect(found).toStrictEqual({
      policy: "r",
      applies: false,
      shadow: false,
      unit: "requests",
      cost: 0,
      mismatches,
    })
  })

  it("returns cannotRelease as the reason why a rule with concurrent does not apply, and one warning says so", async () => {
    const said: string[] = []
    const logger = { warn: (_: object, message: string) => void said.push(message), error() {} }
    const inFlight: Rule = { name: "one", field: "ip", concurrent: 1, match: { methods: ["POST"] } }
    const limiter = createLimiter<RequestFacts>({ rules: [RULE, inFlight], logger })
    const request = { ...CLIENT, method: "POST", cannotRelease: true }
    await limiter.decide({ ...request, method: "GET" })
    expect(said).toEqual([])
    const mismatches = (await limiter.explain(request)).map((each) => each.mismatches)
    expect(mismatches).toEqual([[], [{ member: "cannotRelease" }]])
    for (let times = 0; times < 3; times++) {
      expect((await limiter.decide(request)).checks.map(({ policy }) => policy)).toEqual(["r"])
    }
    expect(said).toEqual([expect.stringMatching(/^Rule "one" has "concurrent", but nobody says when/)])
    expect(await limiter.decide({ ...request, cannotRelease: false })).toMatchObject({ allowed: true })
    expect(await limiter.decide({ ...request, cannotRelease: false })).toMatchObject({ refusal: "in-flight" })
    await limiter.close()
  })

  it("takes nothing, and multiplies the units of the call with the rule's cost", async () => {
    const limiter = createLimiter({ ...RULE, limit: 1 })
    expect(await limiter.explain(CLIENT, { cost: 4 })).toMatchObject([{ cost: 4 }])
    expect(await limiter.decide(CLIENT)).toMatchObject({ allowed: true, remaining: 0 })
    await limiter.close()
    await expect(limiter.explain(CLIENT)).rejects.toThrow("closed")
  })

  it("explains named rules as if their match applied, but still applies their lists", async () => {
    const rules = [
      { ...RULE, name: "login", match: { path: "/login" } },
      { ...RULE, name: "all", allow: ["192.0.2.7"], match: { path: "/x" } },
      { ...RULE, name: "other" },
    ]
    const limiter = createLimiter({ rules })
    expect(await limiter.explain(CLIENT, { rules: ["all", "login"] })).toMatchObject([
      { policy: "login", applies: true, counter: { partition: "192.0.2.7" } },
      { policy: "all", applies: false, mismatches: [{ member: "allow" }] },
    ])
    await expect(limiter.explain(CLIENT, { rules: ["lgin"] })).rejects.toThrow('"lgin"')
    await expect(limiter.explain(CLIENT, { policies: [] } as object)).rejects.toThrow("explain()")
    await limiter.close()
  })

  it("also explains the rule of a route if the rule is named", async () => {
    const limiter = createLimiter<RequestFacts>({ ...RULE, name: "all" }) as RequestLimiter<RequestFacts>
    const route = { key: "GET /a", whose: "the same route", label: "route GET /a", defaultName: "route" }
    limiter.forRoute({}, { ...route, rule: { limit: 3, window: "1 minute" } })
    expect(await limiter.explain(CLIENT, { rules: ["route", "all"] })).toMatchObject([
      { policy: "all", applies: true, counter: { policy: { limit: 10 } } },
      { policy: "route", applies: true, counter: { policy: { limit: 3 } } },
    ])
    await limiter.close()
  })

  it("returns an empty array for a request that is not counted", async () => {
    const skipping = createLimiter<RequestFacts>({ ...RULE, skip: ({ url }) => url === "/health" })
    expect(await skipping.explain({ ...CLIENT, url: "/health" })).toEqual([])
    expect(await skipping.explain({ ...CLIENT, url: "/" })).toHaveLength(1)
    await skipping.close()
  })

  it("lists exactly the rules that a decision checks as applied, with a reason for every other rule", async () => {
    const some = <T>(...values: T[]) => fc.constantFrom(...values)
    const match = fc.record(
      {
        methods: some(["GET"], ["POST", "OPTIONS"]),
        path: some("/a", "/a/*", "/:x"),
        fields: some<Record<string, string[]>>(
          { ip: ["192.0.2.0/24"] },
          { "query:q": ["1"], method: ["get"] },
        ),
      },
      { requiredKeys: [] },
    )
    const rule = fc.record(
      {
        field: some<string | string[]>("ip", "service", "query:q", ["ip", "header:h"], "route"),
        // "deny" is omitted, because a decision that it refuses contains no checks of other rules.
        onMissing: some("ip", "skip", "shared"),
        match,
        shadow: fc.boolean(),
      },
      { requiredKeys: ["field"] },
    )
    const request = fc.record(
      {
        method: some("GET", "POST", "OPTIONS", "HEAD"),
        url: some("/a", "/a/b?q=1", "/"),
        route: some("/:x", ""),
        headers: some({}, { h: "1" }, { origin: "a", "access-control-request-method": "PUT" }),
        remoteAddress: some("192.0.2.7", "2001:db8::1"),
        onlyFields: some(new Set(["ip"]), new Set(["service", "query:q"])),
      },
      { requiredKeys: [] },
    )
    await fc.assert(
      fc.asyncProperty(fc.array(rule, { maxLength: 20 }), request, async (given, facts) => {
        const rules = given.map((each, at) => ({ ...RULE, name: `r${at}`, limit: 1_000, ...each }) as Rule)
        const limiter = createLimiter({ rules, logger: LOGGER })
        const all = await limiter.explain(facts)
        const { checks } = await limiter.decide(facts)
        await limiter.close()
        expect(all.map(({ policy }) => policy)).toEqual(rules.map(({ name }) => name))
        const applying = all.filter(({ applies }) => applies)
        expect(applying.map(({ policy }) => policy)).toEqual(checks.map(({ policy }) => policy))
        for (const { applies, mismatches } of all) expect(mismatches.length > 0).toBe(!applies)
      }),
      { numRuns: 200 },
    )
  })
})
