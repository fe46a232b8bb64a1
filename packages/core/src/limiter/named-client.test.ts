import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { manualClock } from "../ground/manual-clock.ts"
import type { RequestFacts } from "../request/request.ts"
import type { Rule } from "../rules/rule.ts"
import { memoryStore } from "../stores/memory/memory-store.ts"
import { createLimiter } from "./create-limiter.ts"
import type { LimiterOptions } from "./options/options.ts"

type Options = Partial<LimiterOptions<RequestFacts>>

function limiterWith(rule: Partial<Rule>, options: Options = {}) {
  const clock = manualClock(1_700_000_000_000)
  const rules = [
    { limit: 3, window: "1 minute", ...rule, name: "r" },
    { name: "other", field: "ip", limit: 100, window: "1 minute" },
  ] as Rule[]
  const fields = (name: string) => (request: RequestFacts) =>
    (request as { own?: Record<string, string> }).own?.[name]
  const given = { service: "shop", store: memoryStore({ clock }), clock, fields, rules, ...options }
  return createLimiter(given as LimiterOptions<RequestFacts>)
}

const LONG = "x".repeat(300)
const requests = fc.record({
  remoteAddress: fc.constantFrom("192.0.2.7", "2001:db8:1:2::7", "::ffff:192.0.2.7", undefined),
  method: fc.constantFrom("GET", "head", "POST"),
  route: fc.constantFrom("/a", "/users/:id"),
  headers: fc.record({
    "x-user": fc.constantFrom("ada", "@shared", "#7", LONG),
    authorization: fc.constant("Bearer a"),
  }),
  body: fc.record({ user: fc.record({ id: fc.constantFrom(7, "7", "a:1") }) }),
  own: fc.record({ user: fc.constantFrom("ada", "@1:a", "ü", LONG, undefined) }, { requiredKeys: [] }),
})
const rules: fc.Arbitrary<Partial<Rule>> = fc.record(
  {
    field: fc.constantFrom<string | string[]>(
      ...[
        "service",
        "ip",
        "user",
        "method",
        "route",
        "header:x-user",
        "header:authorization",
        "body:user.id",
      ],
      ["user", "ip"],
      ["header:x-user", "method"],
    ),
    onMissing: fc.constantFrom("ip", "shared", "deny", "skip"),
    algorithm: fc.constantFrom("fixed-window", "sliding-log", "token-bucket"),
    shadow: fc.boolean(),
    penalty: fc.constant({ refusals: 2, within: "1 minute", for: "1 hour" }),
  },
  { requiredKeys: ["field"] },
)

describe("a named client", () => {
  it("is treated as a request of the client that the key belongs to, for all kinds of fields", async () => {
    const hashing = fc.constantFrom<Options>({}, { hashKeys: true, hashSecret: "a secret of 16 characters" })
    await fc.assert(
      fc.asyncProperty(rules, requests, hashing, fc.array(requests), async (rule, request, hides, others) => {
        fc.pre(rule.field !== "service" || rule.penalty === undefined)
        const limiter = limiterWith(rule, hides)
        for (const each of [request, ...others, request]) await limiter.decide(each)
        const [explained] = await limiter.explain(request, { rules: ["r"] })
        const key = explained?.counter?.partition
        fc.pre(key !== undefined)
        const client = limiter.client("r", key as string)
        const both = async () => {
          const named = await limiter.peek(client)
          expect(named).toEqual(await limiter.peek(request, { rules: ["r"] }))
          expect(await limiter.explain(client)).toEqual(await limiter.explain(request, { rules: ["r"] }))
          return named
        }
        await both()
        // A block of all requests without the field and an address would affect everybody.
        const isNobody = key === "@shared" && (rule.onMissing ?? "ip") === "ip"
        if (isNobody) await expect(limiter.block(client, { for: "1 day" })).rejects.toThrow("no effect")
        else if (rule.shadow !== true) {
          await limiter.block(client, { for: "1 day" })
          expect((await both()).refusal).toBe("blocked")
          await limiter.unblock(client)
          expect((await both()).refusal).not.toBe("blocked")
        }
        await limiter.reset(client)
        expect((await both()).checks).toMatchObject([{ remaining: 3 }])
      }),
    )
  })

  it("may be named by the values of the rule's fields, in their order", async () => {
    const limiter = limiterWith({ field: ["user", "ip"] })
    const request = { remoteAddress: "2001:db8:1:2::7", own: { user: "@ada" } }
    await limiter.decide(request)
    for (const address of ["2001:db8:1:2::7", "2001:DB8:1:2:0::9", "2001:db8:1:2::/64"]) {
      const client = limiter.client("r", ["@ada", address])
      expect(await limiter.peek(client)).toMatchObject({ remaining: 2, policy: "r" })
    }
    expect(await limiter.peek(limiter.client("r", ["ada", "192.0.2.7"]))).toMatchObject({ remaining: 3 })
  })

  it.each(["192.0.2.0/24", "192.0.2.7/32", "192.0.2.7/x", "2001:db8::/32", "2001:db8:1:2::7/64"])(
    "may not be named by %s, because a block would only affect one client of a network",
    async (network) => {
      const limiter = limiterWith({ field: "ip" })
      await expect(limiter.block(limiter.client("r", [network]), { for: "1 hour" })).rejects.toThrow(
        `"${network}" is not the network of one client; accepted: an address, such as "192.0.2.7"`,
      )
    },
  )

  it("may be named by its network, which has the length of the limiter's `ipv6Prefix`", async () => {
    const limiter = limiterWith({ field: "ip" }, { ipv6Prefix: 48 })
    await limiter.decide({ remoteAddress: "2001:db8:1:2::7" })
    expect(await limiter.peek(limiter.client("r", ["2001:DB8:1::/48"]))).toMatchObject({ remaining: 2 })
    await expect(limiter.peek(limiter.client("r", ["2001:db8:1:2::/64"]))).rejects.toThrow("of one client")
  })

  it("may be named by the hash of its values, as lists show it, also as the only value", async () => {
    const limiter = limiterWith({ field: ["user", "ip"], deny: undefined } as Partial<Rule>, {
      hashKeys: true,
    })
    const request = { remoteAddress: "192.0.2.7", own: { user: "ada" } } as RequestFacts
    await limiter.decide(request)
    const [explained] = await limiter.explain(request, { rules: ["r"] })
    const hash = explained?.counter?.partition as string
    expect(hash).toMatch(/^#/)
    for (const key of [hash, [hash]])
      expect(await limiter.peek(limiter.client("r", key))).toMatchObject({ remaining: 2 })
  })

  it("has the limit of its override, and is not counted or always refused if a list names it", async () => {
    const limiter = limiterWith({
      field: "user",
      overrides: { vip: 50 },
      allow: ["monitor"],
      deny: ["mallory"],
      match: { path: "/elsewhere" },
    })
    const peek = (user: string) => limiter.peek(limiter.client("r", [user]))
    expect(await peek("vip")).toMatchObject({ limit: 50 })
    expect(await peek("mallory")).toMatchObject({ allowed: false, refusal: "denied" })
    expect((await peek("monitor")).checks).toEqual([])
    const [explained] = await limiter.explain(limiter.client("r", ["monitor"]))
    expect(explained).toMatchObject({
      applies: false,
      mismatches: [{ member: "allow", field: "user", value: "monitor" }],
    })
    await expect(limiter.block(limiter.client("r", ["monitor"]), { for: "1 minute" })).rejects.toThrow(
      "a block would have no effect",
    )
  })

  it("has the limit of the override for its own network", async () => {
    const limiter = limiterWith({ field: "ip", overrides: { "2001:db8:1:2::/64": 50, "10.0.0.0/8": 7 } })
    expect(await limiter.peek(limiter.client("r", "2001:db8:1:2::/64"))).toMatchObject({ limit: 50 })
    expect(await limiter.peek(limiter.client("r", ["10.1.2.3"]))).toMatchObject({ limit: 7 })
  })

  it("may be named by a method in any spelling, and HEAD is GET", async () => {
    const limiter = limiterWith({ field: "method" })
    await limiter.decide({ method: "GET", remoteAddress: "192.0.2.7" })
    for (const method of ["GET", "get", "HEAD", "head"])
      expect(await limiter.peek(limiter.client("r", [method]))).toMatchObject({ remaining: 2 })
  })

  it("is read as its own address, whatever proxies are trusted", async () => {
    const limiter = limiterWith({ field: "ip" }, { trustedProxies: 1 })
    await limiter.decide({ remoteAddress: "10.0.0.1", headers: { "x-forwarded-for": "192.0.2.7" } })
    expect(await limiter.peek(limiter.client("r", ["192.0.2.7"]))).toMatchObject({ remaining: 2 })
  })

  it("needs no function of the app", async () => {
    const called: unknown[] = []
    const fails = (request: unknown) => {
      called.push(request)
      throw new Error("no request")
    }
    const limiter = limiterWith(
      { field: "user", counts: "tokens", match: { when: fails } },
      { fields: () => fails, units: { tokens: fails }, skip: fails },
    )
    const client = limiter.client("r", ["ada"])
    expect(await limiter.peek(client)).toMatchObject({ limit: 3, remaining: 3 })
    expect(await limiter.peek(client, { units: { tokens: 4 } })).toMatchObject({ allowed: false })
    await limiter.block(client, { for: "1 minute" })
    expect(await limiter.peek(client)).toMatchObject({ refusal: "blocked" })
    await limiter.reset(client)
    expect(await limiter.peek(client)).toMatchObject({ allowed: true })
    expect(called).toEqual([])
  })

  it("can be blocked and reset under a rule whose limit and window are functions, but not peeked", async () => {
    type Own = { own: { user: string; limit: number; window: string } }
    const limit = ({ own }: Own) => own.limit
    const window = ({ own }: Own) => own.window
    for (const functions of [{ limit }, { window }, { limit, window }]) {
      const limiter = limiterWith({ field: "user", limit: 1, ...functions } as unknown as Partial<Rule>)
      const warned: string[] = []
      limiter.on("warning", ({ message }) => warned.push(message))
      const own = { user: "ada", limit: 1, window: "1 hour" }
      const request = { remoteAddress: "192.0.2.7", own } as RequestFacts
      const client = limiter.client("r", ["ada"])
      await limiter.decide(request)
      expect(await limiter.peek(request)).toMatchObject({ allowed: false, refusal: "quota" })
      await limiter.reset(client)
      expect(await limiter.peek(request)).toMatchObject({ allowed: true })
      await limiter.block(client, { for: "1 minute" })
      expect(await limiter.peek(request)).toMatchObject({ allowed: false, refusal: "blocked" })
      const counter = { policy: { name: "r", limit: 0 }, partition: "ada" }
      expect(await limiter.explain(client)).toMatchObject([{ applies: true, counter }])
      await expect(limiter.peek(client)).rejects.toThrow(
        'request: is named by rule "r", whose limit, window or anchor is a function of the request; accepted: a request of the client',
      )
      expect(warned).toEqual([])
    }
  })

  it("loses the permits that it holds when it is reset", async () => {
    const limiter = limiterWith({
      field: "user",
      limit: undefined,
      window: undefined,
      concurrent: 2,
    } as Partial<Rule>)
    await limiter.decide({ own: { user: "ada" } } as RequestFacts)
    const client = limiter.client("r", ["ada"])
    expect(await limiter.peek(client)).toMatchObject({ remaining: 1 })
    await limiter.reset(client)
    expect(await limiter.peek(client)).toMatchObject({ remaining: 2 })
  })

  it("does nothing to a limiter that is disabled, and rejects after the limiter is closed", async () => {
    const limiter = limiterWith({ field: "user" }, { enabled: false })
    const client = limiter.client("r", ["ada"])
    await limiter.block(client, { for: "1 minute" })
    expect((await limiter.peek(client)).checks).toEqual([])
    expect(await limiter.explain(client)).toEqual([])
    await limiter.close()
    await expect(limiter.peek(client)).rejects.toThrow("closed")
    await expect(limiter.explain(client)).rejects.toThrow("closed")
  })

  it.each<[string, string | string[], Partial<Rule>, string]>([
    ["no", ["ada"], { field: "user" }, '"no" is not the name of a rule'],
    [
      "r",
      ["ada", "eve"],
      { field: "user" },
      'has 2 values, but rule "r" counts by user; accepted: a value for user',
    ],
    [
      "r",
      [],
      { field: ["user", "ip"] },
      'client: has 0 values, but rule "r" counts by user and ip; accepted: a value for user, then for ip',
    ],
    [
      "r",
      ["ada"],
      { field: "service" },
      'has 1 value, but rule "r" counts the whole service; accepted: no value',
    ],
    ["r", [""], { field: "user" }, 'has no value for "user"; accepted: the value of the field'],
    ["r", ["ada"], { field: "ip" }, '"ada" is not an IP address; accepted: an address, such as "192.0.2.7"'],
    [
      "r",
      "@ada",
      { field: "user" },
      '"@ada" is not the text of a counter; accepted: a list of values, such as ["ada"]',
    ],
    ["r", "#short", { field: "user" }, '"#short" is not the text of a counter'],
  ])("cannot be rule %j with the key %j of the rule %j", async (rule, key, of, says) => {
    const limiter = limiterWith(of)
    const client = limiter.client(rule, key)
    const calls = [
      () => limiter.peek(client),
      () => limiter.explain(client),
      () => limiter.reset(client),
      () => limiter.block(client, { for: "1 minute" }),
      () => limiter.unblock(client),
    ]
    for (const call of calls) await expect(call()).rejects.toThrow(says)
  })

  it("cannot be combined with other rules, or be decided", async () => {
    const limiter = limiterWith({ field: "user" })
    const client = limiter.client("r", ["ada"])
    await expect(limiter.reset(client, { rules: ["other"] })).rejects.toThrow(
      '"other" is not the name of a rule',
    )
    expect(await limiter.peek(client, { rules: ["r"] })).toMatchObject({ limit: 3 })
    await expect(limiter.decide(client)).rejects.toThrow(
      "request: is a client that limiter.client() returned, which has sent no request; accepted: a request; a named client " +
        "only in peek, explain, reset, block and unblock",
    )
    expect(() => limiter.client(7 as never, ["ada"])).toThrow("rule: 7 is not the name of a rule")
    for (const key of [{ key: "ada" }, [7], 7])
      expect(() => limiter.client("r", key as never)).toThrow("is not the key of a client")
  })
})
