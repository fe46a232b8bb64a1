import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { InvalidOptionError } from "../ground/errors.ts"
import { manualClock } from "../ground/manual-clock.ts"
import { createLimiter } from "../limiter/create-limiter.ts"
import { fillRule } from "../rules/parsing/fill-rule.ts"
import type { CalendarRule, RateRule, Rule } from "../rules/rule.ts"
import { memoryStore } from "../stores/memory/memory-store.ts"
import { createReplay } from "./create-replay.ts"
import type { ReplayRequest } from "./replay.ts"

const MINUTE = 60_000
const ADDRESSES = ["192.0.2.1", "192.0.2.2", "2001:db8:1::7"]

const RULE_KINDS: readonly (Partial<RateRule> | Partial<CalendarRule>)[] = [
  { algorithm: "fixed-window" },
  { algorithm: "fixed-window", align: "first-hit" },
  { algorithm: "sliding-window" },
  { algorithm: "sliding-window", buckets: 6 },
  { algorithm: "sliding-window-strict" },
  { algorithm: "sliding-log" },
  { algorithm: "token-bucket", burst: 5 },
  { algorithm: "token-bucket", refill: "periodic" },
  { algorithm: "leaky-bucket" },
  { throttle: { kind: "soft", percent: 50 } },
  { throttle: { kind: "queue" } },
  { countRejected: true },
  { per: "day", timeZone: "Europe/Berlin" },
  { per: "week", anchor: 7, countRejected: true },
  { penalty: { refusals: 2, for: ["10 seconds", "1 minute"], within: "20 seconds" } },
  { shadow: true },
  { overrides: { "192.0.2.1": 1, "192.0.2.2": 4 }, field: "ip" },
  { field: "ip", deny: ["192.0.2.2"] },
  { field: "ip", allow: ["192.0.2.2"] },
  { field: ["ip", "query:user"] },
  { field: "query:user", onMissing: "deny" },
  { field: "service" },
  { match: { path: "/login", methods: ["POST"] } },
]

const rules: fc.Arbitrary<Rule[]> = fc
  .array(
    fc.record({
      kind: fc.constantFrom(...RULE_KINDS),
      limit: fc.integer({ min: 2, max: 6 }),
      window: fc.constantFrom("10 ms", "1 second", "1 minute"),
      shadow: fc.integer({ min: 0, max: 5 }).map((roll) => roll === 0),
    }),
    { minLength: 1, maxLength: 4 },
  )
  .map((list) =>
    list.map(({ kind, limit, window, shadow }, i): Rule => {
      const isPlain = kind.penalty === undefined && kind.countRejected === undefined
      return {
        name: `r${i}`,
        field: "ip",
        limit,
        ...(kind.per === undefined && { window }),
        ...(shadow && isPlain && { shadow }),
        ...kind,
      } as Rule
    }),
  )

const requests: fc.Arbitrary<ReplayRequest[]> = fc
  .array(
    fc.record({
      afterMs: fc.oneof(
        fc.constantFrom(0, 0, 0, 1, 9, 10, 11, 999, 1_000, MINUTE, 2 * MINUTE, 600 * MINUTE),
        fc.nat(30),
        fc.nat(2_000),
        fc.nat(90_000),
      ),
      cost: fc.constantFrom(1, 1, 1, 1, 0, 2, 7, undefined),
      remoteAddress: fc.constantFrom(...ADDRESSES, undefined),
      url: fc.constantFrom("/", "/login", "/login?user=7", "/?user=8"),
      method: fc.constantFrom("GET", "POST"),
    }),
    { minLength: 1, maxLength: 60 },
  )
  .map((list) => {
    let atMs = 1_750_000_000_123
    return list.map(({ afterMs, ...request }) => {
      atMs += afterMs
      return { ...request, atMs }
    })
  })

describe("createReplay", () => {
  it("returns the same decisions as `decide` on a manual clock, for any rules and requests", async () => {
    await fc.assert(
      fc.asyncProperty(rules, requests, async (list, trace) => {
        const clock = manualClock(0)
        const limiter = createLimiter<ReplayRequest>({
          rules: list as never,
          clock,
          store: memoryStore({ clock }),
          logger: { warn() {}, error() {} },
        })
        const replay = createReplay({ rules: list as never })
        for (const request of trace) {
          clock.set(request.atMs)
          const decision = await limiter.decide(request, { cost: request.cost })
          const verdict = replay.offer(request)
          const { allowed, refusedBy, shadowedBy, delayMs } = verdict
          const refused = decision.checks.filter((check) => !check.allowed && !check.shadow)
          expect({ allowed, refusedBy, shadowedBy, delayMs }).toEqual({
            allowed: decision.allowed,
            refusedBy: decision.allowed ? [] : refused.map(({ policy }) => policy),
            shadowedBy: decision.shadowed,
            delayMs: decision.delayMs,
          })
          expect({ ...verdict.decision() }).toEqual({ ...decision })
        }
        await limiter.close()
      }),
      { numRuns: 1_000 },
    )
  })

  it("returns a replay whose offer() reuses one result object for all requests", () => {
    const replay = createReplay({ rules: [{ name: "per-ip", field: "ip", limit: 1, window: "1 minute" }] })
    const first = replay.offer({ remoteAddress: "2001:db8:1:2:3::4", atMs: 5 })
    expect(first).toMatchObject({ allowed: true, client: "2001:db8:1:2::/64" })
    expect(first.address()).toBe("2001:db8:1:2:3::4")
    expect(first.checks).toMatchObject([
      { policy: { name: "per-ip", limit: 1 }, partition: "2001:db8:1:2::/64", cost: 1 },
    ])
    const second = replay.offer({ remoteAddress: "2001:db8:1:2:3::5", atMs: 6 })
    expect(second).toBe(first)
    expect(first).toMatchObject({ allowed: false, refusedBy: ["per-ip"] })
    expect(replay.offer({ atMs: 7 }).client).toBeUndefined()
  })

  it("accepts parsed rules, and functions for the app's own fields", () => {
    const parsed = [fillRule({ name: "per-user", field: "user_id", limit: 1, window: "1 minute" })]
    const replay = createReplay({
      rules: parsed,
      service: 7,
      fields: { user_id: (request) => request.headers?.["x-user"] as string },
    })
    expect(replay.rules).toEqual(parsed)
    const by = (user: string) => replay.offer({ headers: { "x-user": user }, atMs: 5 }).allowed
    expect([by("ann"), by("ben"), by("ann")]).toEqual([true, true, false])
  })

  it("replays elastic throttling as hard throttling", () => {
    const throttle = { kind: "elastic", signal: () => true } as const
    const replay = createReplay({ rules: [{ limit: 1, window: "1 minute", field: "service", throttle }] })
    expect([5, 6].map((atMs) => replay.offer({ atMs }).allowed)).toEqual([true, false])
    expect(replay.rules).toMatchObject([{ throttle: { kind: "elastic" } }])
  })

  it("reads the client's address from a trusted proxy's header", () => {
    const replay = createReplay({ rules: [], trustedProxies: 1 })
    const headers = { "x-forwarded-for": "198.51.100.7" }
    expect(replay.offer({ remoteAddress: "10.0.0.1", headers, atMs: 5 }).client).toBe("198.51.100.7")
  })

  it("lists the rules that it cannot judge because the requests lack their fields", () => {
    const replay = createReplay({
      rules: [
        { name: "per-ip", field: "ip", limit: 1, window: "1 minute" },
        { name: "per-user", field: "user_id", limit: 1, window: "1 minute" },
        {
          name: "plan",
          field: "ip",
          limit: 1,
          window: "1 minute",
          match: { fields: { "header:x-plan": ["free"] } },
        },
        { name: "all", field: "service", limit: 100, window: "1 minute" },
        {
          name: "login",
          field: "ip",
          limit: 1,
          window: "1 minute",
          match: { path: "/login", methods: ["POST"] },
        },
      ],
    })
    const onlyFields = new Set(["ip", "service"])
    for (const atMs of [5, 6]) replay.offer({ remoteAddress: "192.0.2.7", onlyFields, atMs })
    expect(replay.notJudged).toEqual([
      { rule: "per-user", field: "user_id", requests: 2 },
      { rule: "plan", field: "header:x-plan", requests: 2 },
      { rule: "login", field: "method", requests: 2 },
      { rule: "login", field: "path", requests: 2 },
    ])
  })

  it("lists rules with concurrent as unjudged, and does not apply them", () => {
    const replay = createReplay({
      rules: [
        { name: "streams", field: "ip", concurrent: 1, deny: ["192.0.2.7"] },
        { name: "per-ip", field: "ip", limit: 2, window: "1 minute" },
      ],
    })
    expect(replay.notJudged).toEqual([])
    for (const atMs of [5, 6]) expect(replay.offer({ remoteAddress: "192.0.2.7", atMs }).allowed).toBe(true)
    expect(replay.offer({ remoteAddress: "192.0.2.7", atMs: 7 }).refusedBy).toEqual(["per-ip"])
    expect(replay.notJudged).toEqual([{ rule: "streams", field: "concurrent", requests: 3 }])
  })

  it("counts the requests that lack a field, even if other requests contain the field", () => {
    const replay = createReplay({
      rules: [{ name: "per-user", field: "user_id", limit: 1, window: "1 minute" }],
    })
    const [without, having] = [new Set(["ip"]), new Set(["ip", "user_id"])]
    for (const onlyFields of [without, having, without]) replay.offer({ onlyFields, atMs: 5 })
    expect(replay.notJudged).toEqual([{ rule: "per-user", field: "user_id", requests: 2 }])
  })

  it("lists no unjudged rule before any request, or if one request contains all that the rule reads", () => {
    const login: Rule = {
      limit: 1,
      window: "1m",
      field: "service",
      match: { path: "/login", methods: ["POST"] },
    }
    const replay = createReplay({ rules: [login] })
    expect(replay.notJudged).toEqual([])
    replay.offer({ atMs: 5 })
    replay.offer({ atMs: 6, method: "POST", url: "/login" })
    expect(replay.notJudged).toEqual([])
  })

  it("counts the units that the option units returns", () => {
    const rule = { field: "service", limit: 100, window: "1 minute" } as const
    const units = {
      tokens: (request: object) => Number((request as { readonly tokens?: number }).tokens ?? 1),
    }
    const replay = createReplay({
      units,
      rules: [
        { ...rule, name: "tpm", counts: "tokens" },
        { ...rule, name: "rpm" },
      ],
    })
    expect(replay.offer({ atMs: 5, tokens: 90 } as ReplayRequest).checks).toMatchObject([
      { cost: 90 },
      { cost: 1 },
    ])
    expect(replay.offer({ atMs: 5, tokens: 11 } as ReplayRequest)).toMatchObject({ refusedBy: ["tpm"] })
    expect(replay.offer({ atMs: 5, cost: 5 }).checks).toMatchObject([{ cost: 1 }, { cost: 5 }])
  })

  it("reports the number of counters that were evicted too early", () => {
    const replay = createReplay({ rules: [{ field: "ip", limit: 1, window: "1 minute" }], maxKeys: 1 })
    for (let i = 0; i < 30; i++) replay.offer({ remoteAddress: `192.0.2.${i}`, atMs: 5 })
    expect(replay.evictions).toBe(29)
  })

  it.each([
    ["a request with an earlier time", { atMs: 4 }, "atMs: 4 is earlier than the request before it"],
    ["a request without a time", {}, "atMs: undefined is not a time"],
    ["a time that is not a number", { atMs: "5" }, 'atMs: "5" is not a time'],
    ["a time in microseconds", { atMs: 1_750_000_000_000_000 }, "atMs: 1750000000000000 is not a time"],
    ["a negative cost", { atMs: 6, cost: -1 }, "cost: -1 is not a valid cost"],
    ["a missing request", undefined, "request: undefined is not a request"],
  ])("returns a replay whose offer() rejects %s", (_name, request, message) => {
    const replay = createReplay({ rules: [] })
    replay.offer({ atMs: 5 })
    expect(() => replay.offer(request as never)).toThrow(InvalidOptionError)
    expect(() => replay.offer(request as never)).toThrow(message)
    // The failed call changes nothing.
    expect(replay.offer({ atMs: 5 }).allowed).toBe(true)
  })

  it.each([
    ["missing options", undefined, "an object with rules"],
    ["options without rules", {}, "rules"],
    ["a source of rules", { rules: { load() {} } }, "rules"],
    ["a list with missing rules", { rules: new Array(2) }, "rules[0]"],
    ["an invalid rule", { rules: [{ limit: 0, window: "1m", field: "ip" }] }, "rules[0].limit"],
    ["an unknown option", { rules: [], store: memoryStore() }, "store"],
    ["a maxKeys that is too large", { rules: [], maxKeys: 1e9 }, "maxKeys"],
    ["an invalid proxy", { rules: [], trustedProxies: "x" }, "trustedProxies"],
  ])("rejects %s", (_name, options, part) => {
    expect(() => createReplay(options as never)).toThrow(InvalidOptionError)
    expect(() => createReplay(options as never)).toThrow(part)
  })
})
