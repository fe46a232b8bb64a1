import { createHash } from "node:crypto"
import { describe, expect, it } from "vitest"
import type { Decision } from "../../decision/decision.ts"
import { manualClock } from "../../ground/manual-clock.ts"
import type { Policy } from "../../ground/policy.ts"
import type { RequestFacts } from "../../request/request.ts"
import type { RateRule, Rule } from "../../rules/rule.ts"
import { memoryStore } from "../../stores/memory/memory-store.ts"
import type { Store } from "../../stores/store.ts"
import { methodsOf } from "../../stores/testing/methods-of.ts"
import { createLimiter } from "../create-limiter.ts"
import type { LimiterOptions } from "../options/options.ts"

const QUIET = { warn() {}, error() {} }
const FROM = (remoteAddress: string, more: RequestFacts = {}): RequestFacts => ({ remoteAddress, ...more })

function limiterWith(options: LimiterOptions<RequestFacts>) {
  return createLimiter({ clock: manualClock(), logger: QUIET, ...options })
}

/** Returns the verdict of each request in turn, or "none" if no rule applies to it. */
async function verdicts(
  options: LimiterOptions<RequestFacts>,
  requests: readonly RequestFacts[],
): Promise<string[]> {
  const limiter = limiterWith(options)
  const all: string[] = []
  for (const request of requests) {
    const { allowed, policy, refusal } = await limiter.decide(request)
    all.push(policy === "" ? "none" : allowed ? "admit" : (refusal as string))
  }
  return all
}

describe("allow and deny lists", () => {
  const rule = {
    limit: 1,
    window: "1m",
    field: "header:key",
    allow: ["friend", "both"],
    deny: ["foe", "both"],
  }
  const withKey = (key: string): RequestFacts => ({ headers: { key } })

  it("do not count allowed clients, refuse denied ones, and count all others", async () => {
    expect(
      await verdicts(rule, ["friend", "friend", "foe", "other", "other", "FRIEND"].map(withKey)),
    ).toEqual(["none", "none", "denied", "admit", "quota", "admit"])
  })

  it("refuse a client that is on both lists", async () => {
    expect(await verdicts(rule, [withKey("both")])).toEqual(["denied"])
  })

  it("work alone", async () => {
    const { allow, deny, ...bare } = rule
    const requests = ["friend", "friend", "foe"].map(withKey)
    expect(await verdicts({ ...bare, allow }, requests)).toEqual(["none", "none", "admit"])
    expect(await verdicts({ ...bare, deny }, requests)).toEqual(["admit", "quota", "denied"])
  })

  it("refuse a denied client forever, before any counter is read", async () => {
    const limiter = limiterWith({
      rules: [
        { ...rule, name: "listed", rejectionMessage: "banned" },
        { name: "all", field: "service", limit: 9, window: "1m" },
      ],
    })
    const decision = await limiter.decide(withKey("foe"))
    expect(decision).toMatchObject({
      allowed: false,
      policy: "listed",
      refusal: "denied",
      rejectionMessage: "banned",
      retryAfterMs: Number.POSITIVE_INFINITY,
      remaining: 0,
    })
    expect((await limiter.peek(withKey("other"))).checks).toMatchObject([{}, { policy: "all", remaining: 9 }])
  })

  it("refuse even a request that costs nothing", async () => {
    expect(await limiterWith(rule).decide(withKey("foe"), { cost: 0 })).toMatchObject({ allowed: false })
  })

  it("exempt a client only from their own rule, not from other rules", async () => {
    const limiter = limiterWith({ rules: [rule, { name: "all", field: "service", limit: 1, window: "1m" }] })
    const decisions = [await limiter.decide(withKey("friend")), await limiter.decide(withKey("friend"))]
    expect(decisions).toMatchObject([
      { allowed: true, policy: "all" },
      { allowed: false, policy: "all" },
    ])
  })

  it("do not match a client whose field is missing", async () => {
    expect(await verdicts({ ...rule, onMissing: "deny" }, [{}])).toEqual(["missing-field"])
    expect(await verdicts({ ...rule, onMissing: "skip" }, [{}])).toEqual(["none"])
    expect(await verdicts({ ...rule, onMissing: "shared" }, [{}, {}])).toEqual(["admit", "quota"])
    const ofAddresses = { limit: 1, window: "1m", allow: ["10.0.0.0/8"], deny: ["192.0.2.0/24"] }
    expect(await verdicts(ofAddresses, [{}, {}])).toEqual(["admit", "quota"])
  })

  it("of addresses match a single address of a /64 that is counted as one client", async () => {
    const expected = {
      "2001:db8::7": "denied",
      "2001:DB8:0:0::0007": "denied",
      "2001:db8::8": "none",
      "2001:db8::9": "admit",
      "2001:db8::a": "quota",
      "2001:db8:0:1::7": "admit",
    }
    const lists = { limit: 1, window: "1m", deny: ["2001:db8::7"], allow: ["2001:db8::8"] }
    const addresses = Object.keys(expected).map((at) => FROM(at))
    expect(await verdicts(lists, addresses)).toEqual(Object.values(expected))
  })
})

describe("match", () => {
  it("ignores requests that do not match the rule", async () => {
    const rule = { limit: 1, window: "1m", match: { methods: ["post"], path: "/users/:id" } }
    expect(
      await verdicts(rule, [
        { method: "POST", url: "/users/1" },
        { method: "POST", url: "/users/2?x=1" },
        { method: "POST", url: "/USERS/3/" },
        { method: "GET", url: "/users/1" },
        { method: "POST", url: "/users" },
        { method: "POST" },
        {},
      ]),
    ).toEqual(["admit", "quota", "quota", "none", "none", "none", "none"])
  })

  it("treats values that are not strings as missing", async () => {
    const rule = { limit: 1, window: "1m", match: { methods: ["POST"], path: "/users/:id" } }
    const wrong = [
      { method: 7, url: "/users/1" },
      { method: "POST", url: 7, route: {} },
      { method: "POST", route: ["/users/:id"] },
      { method: "POST", url: "/teams/1", routedUrl: 7 },
    ] as unknown as RequestFacts[]
    expect(await verdicts(rule, wrong)).toEqual(["none", "none", "none", "none"])
  })

  it("checks the target as received and as routed", async () => {
    const rule = { limit: 1, window: "1m", match: { path: "/login" } }
    const storeChecks = [
      { url: "/login", routedUrl: "/elsewhere" },
      { url: "/en/login", routedUrl: "/login" },
      { routedUrl: "/LOGIN/" },
      { url: "/login", routedUrl: "/login" },
      { url: "/en/login", routedUrl: "/en/login" },
      { routedUrl: "/elsewhere" },
    ]
    expect(await verdicts(rule, storeChecks)).toEqual(["admit", "quota", "quota", "quota", "none", "none"])
  })

  it("identifies a route by the framework's own pattern", async () => {
    const rule = { limit: 1, window: "1m", match: { path: "/users/:id" } }
    expect(
      await verdicts(rule, [
        { url: "/mounted/elsewhere", route: "/users/:name" },
        { url: "/elsewhere", route: "/teams/:id" },
      ]),
    ).toEqual(["admit", "none"])
  })

  it("reads fields by the app's extractors, and does not match if a field is missing", async () => {
    const options = {
      rules: [
        {
          name: "free",
          field: "service",
          limit: 1,
          window: "1m",
          match: { fields: { plan: ["free", "trial"] } },
        },
        { name: "pro", field: "service", limit: 3, window: "1m", match: { fields: { plan: ["pro"] } } },
      ],
      fields: { plan: ({ headers }: RequestFacts) => headers?.plan as string | undefined },
    }
    const limiter = limiterWith(options)
    const policyFor = async (request: RequestFacts) => (await limiter.decide(request)).policy
    expect(await policyFor({ headers: { plan: "trial" } })).toBe("free")
    expect(await policyFor({ headers: { plan: "pro" } })).toBe("pro")
    expect(await policyFor({ headers: { plan: "gold" } })).toBe("")
    expect(await policyFor({ query: { plan: "free" } })).toBe("")
  })

  it("treats a field from a promise as missing, without an unhandled rejection", async () => {
    const fields = (() => Promise.reject(new Error("no fields"))) as never
    const rule = { limit: 1, window: "1m", field: "plan", onMissing: "deny" } as const
    expect(await verdicts({ ...rule, fields }, [{}])).toEqual(["missing-field"])
  })

  it("lets HEAD share the quota of GET", async () => {
    const rule = { limit: 2, window: "1m", field: ["ip", "method"], match: { methods: ["GET"] } }
    expect(
      await verdicts(
        rule,
        ["GET", "HEAD", "GET", "HEAD"].map((method) => ({ method })),
      ),
    ).toEqual(["admit", "admit", "quota", "quota"])
  })
})

describe("a preflight", () => {
  const headers = { origin: "https://app.example", "access-control-request-method": "POST" }
  const preflight = { method: "OPTIONS", headers }

  it("is not counted", async () => {
    expect(await verdicts({ limit: 1, window: "1m" }, [preflight, preflight])).toEqual(["none", "none"])
  })

  it("is counted by a rule that matches OPTIONS", async () => {
    const rule = { limit: 1, window: "1m", match: { methods: ["OPTIONS"] } }
    expect(await verdicts(rule, [preflight, preflight])).toEqual(["admit", "quota"])
  })

  it("is an OPTIONS request with an Origin, a requested method and no body", async () => {
    const requests = [
      { method: "OPTIONS" },
      { method: "OPTIONS", headers: {} },
      { method: "OPTIONS", headers: { origin: headers.origin } },
      { method: "OPTIONS", headers: { ...headers, origin: undefined } },
      { method: "OPTIONS", headers: { ...headers, "content-length": "2" } },
      { method: "OPTIONS", headers: { ...headers, "transfer-encoding": "chunked" } },
      { method: "OPTIONS", headers: { ...headers, "content-type": "application/json" } },
      { method: "OPTIONS", headers, hasBody: true },
      { method: "POST", headers },
    ]
    const counted = ["admit", ...Array(8).fill("quota")]
    expect(await verdicts({ limit: 1, window: "1m" }, requests)).toEqual(counted)
    const empty = { ...preflight, headers: { ...headers, "content-length": "0" } }
    expect(await verdicts({ limit: 1, window: "1m" }, [empty, empty])).toEqual(["none", "none"])
  })
})

describe("a rule whose field is missing", () => {
  it('refuses the request and names the field with onMissing "deny", and takes nothing from other rules', async () => {
    const limiter = limiterWith({
      rules: [
        { name: "user", limit: 5, window: "1m", field: ["ip", "header:x-user"], onMissing: "deny" },
        { name: "all", field: "service", limit: 5, window: "1m" },
      ],
    })
    const decision = await limiter.decide(FROM("192.0.2.1"))
    expect(decision).toMatchObject({ allowed: false, policy: "user", refusal: "missing-field" })
    expect(decision.checks).toMatchObject([{ field: "header:x-user", refusal: "missing-field" }])
    expect(decision.checks).toHaveLength(1)
    const { checks } = await limiter.peek(FROM("192.0.2.1", { headers: { "x-user": "7" } }))
    expect(checks.map(({ remaining }) => remaining)).toEqual([5, 5])
  })

  it("counts by address by default, separately from a client that sends that value", async () => {
    const rule = { limit: 1, window: "1m", field: "header:x-user" }
    expect(
      await verdicts(rule, [
        FROM("192.0.2.1"),
        FROM("192.0.2.2"),
        FROM("192.0.2.1"),
        { headers: { "x-user": "192.0.2.1" } },
        { headers: { "x-user": "@ip:192.0.2.1" } },
      ]),
    ).toEqual(["admit", "admit", "quota", "admit", "admit"])
  })
})

describe("onlyFields", () => {
  const rules: Rule[] = [
    { name: "user", limit: 1, window: "1m", field: "body:user" },
    { name: "pair", limit: 1, window: "1m", field: ["ip", "body:user"] },
    { name: "whole", field: "service", limit: 1, window: "1m" },
  ]
  const applied = async (onlyFields: unknown): Promise<string[]> => {
    const facts = { remoteAddress: "192.0.2.1", body: { user: 7 }, onlyFields } as RequestFacts
    const { checks } = await limiterWith({ rules }).decide(facts)
    return checks.map(({ policy }) => policy)
  }

  it("excludes every rule with another field, whatever its onMissing", async () => {
    expect(await applied(new Set(["body:user"]))).toEqual(["user"])
    expect(await applied(new Set(["ip", "body:user"]))).toEqual(["user", "pair"])
    expect(await applied(new Set(["ip"]))).toEqual([])
    expect(await applied(new Set())).toEqual([])
  })

  it("contains header names in lower case, whatever the case in a rule", async () => {
    const limiter = limiterWith({ limit: 1, window: "1m", field: "header:X-Key" })
    const facts: RequestFacts = { headers: { "x-key": "a" }, onlyFields: new Set(["header:x-key"]) }
    expect((await limiter.decide(facts)).checks).toHaveLength(1)
  })

  it("excludes the whole service unless it is listed", async () => {
    expect(await applied(new Set(["service"]))).toEqual(["whole"])
  })

  it.each([[undefined], [null], [["body:user"]], [{}], ["body:user"]])(
    "is ignored if it is %j",
    async (value) => {
      expect(await applied(value)).toEqual(["user", "pair", "whole"])
    },
  )
})

describe("fields", () => {
  it("are read by the function that is returned for a name, except for built-in fields", async () => {
    const storeChecks: string[] = []
    const limiter = limiterWith({
      rules: [
        { name: "user", limit: 1, window: "1m", field: "user.id" },
        { name: "address", limit: 9, window: "1m", field: ["ip", "header:x"] },
      ],
      fields: (name) => {
        storeChecks.push(name)
        return ({ body }) => (body as Record<string, string>)[name]
      },
    })
    const allowed = async (id: string) => (await limiter.decide({ body: { "user.id": id } })).allowed
    expect([await allowed("a"), await allowed("b"), await allowed("a")]).toEqual([true, true, false])
    expect(storeChecks).toEqual(["user.id"])
  })

  it("without a function from the app come from the client, as any other name does", async () => {
    const limiter = limiterWith({ limit: 1, window: "1m", field: "user", fields: () => undefined })
    expect((await limiter.decide({ query: { user: "a" } })).allowed).toBe(true)
    expect((await limiter.decide({ query: { user: "b" } })).allowed).toBe(true)
    expect((await limiter.decide({ query: { user: "a" } })).allowed).toBe(false)
  })

  it.each([
    ["returns another value", () => 7, '"fields" did not return a function for "user"'],
    [
      "throws",
      () => {
        throw new Error("no such name")
      },
      "no such name",
    ],
  ])("are missing and reported once if the function %s", async (_case, fields, reason) => {
    const warnings: string[] = []
    const limiter = limiterWith({
      limit: 1,
      window: "1m",
      field: "user",
      onMissing: "shared",
      fields: fields as unknown as NonNullable<LimiterOptions<RequestFacts>["fields"]>,
      logger: { warn: (_fields, message) => warnings.push(message), error() {} },
    })
    expect((await limiter.decide({ query: { user: "a" } })).allowed).toBe(true)
    expect((await limiter.decide({ query: { user: "b" } })).allowed).toBe(false)
    expect(warnings.filter((warning) => warning.includes(reason))).toHaveLength(1)
  })

  it("come from the app's extractors, as a number or a string", async () => {
    const ids = [7, "7", 8, undefined]
    const limiter = limiterWith({
      limit: 1,
      window: "1m",
      field: "user_id",
      onMissing: "skip",
      fields: { user_id: () => ids.shift() },
    })
    const all: Decision[] = []
    for (let i = 0; i < 4; i++) all.push(await limiter.decide({}))
    expect(all.map(({ allowed, policy }) => [allowed, policy])).toEqual([
      [true, "user_id-1m"],
      [false, "user_id-1m"],
      [true, "user_id-1m"],
      [true, ""],
    ])
  })

  it("do not come from inherited properties of objects", async () => {
    const limiter = limiterWith({ limit: 1, window: "1m", field: "constructor", onMissing: "deny" })
    expect(await limiter.decide({ params: {}, query: {}, body: {} })).toMatchObject({
      refusal: "missing-field",
    })
  })
})

describe("a shadow rule", () => {
  const names = async (limiter: ReturnType<typeof limiterWith>, request: RequestFacts = {}) => {
    const { allowed, policy, shadowed, limit, cost } = await limiter.decide(request)
    return { allowed, policy, shadowed, limit, cost }
  }
  const left = async (limiter: ReturnType<typeof limiterWith>) =>
    (await limiter.peek({})).checks.map(({ remaining }) => remaining)

  it("refuses nothing, is reported when it would have refused, and takes nothing when it does not fit", async () => {
    const limiter = limiterWith({
      rules: [
        { name: "trial", field: "service", limit: 1, window: "1m", shadow: true },
        { name: "real", field: "service", limit: 3, window: "1m" },
      ],
    })
    expect(await names(limiter)).toMatchObject({ allowed: true, policy: "real", shadowed: [] })
    expect(await left(limiter)).toEqual([0, 2])
    expect(await names(limiter)).toMatchObject({
      allowed: true,
      policy: "real",
      shadowed: ["trial"],
      cost: 1,
    })
    expect(await left(limiter)).toEqual([0, 1])
    const { checks } = await limiter.decide({})
    expect(checks).toMatchObject([
      { policy: "trial", shadow: true, allowed: false, refusal: "quota", retryAfterMs: 60_001 },
      { policy: "real", shadow: false, allowed: true },
    ])
  })

  it("counts, but is never the strictest rule, so a request without other rules has no limit", async () => {
    const limiter = limiterWith({ limit: 1, window: "1m", name: "trial", shadow: true })
    const first = await limiter.decide({})
    expect(first).toMatchObject({ allowed: true, policy: "", limit: Number.POSITIVE_INFINITY, shadowed: [] })
    expect(await names(limiter)).toMatchObject({ allowed: true, policy: "", shadowed: ["trial"] })
    await limiter.refund(first)
    expect(await names(limiter)).toMatchObject({ shadowed: [] })
  })

  it("does not refuse because of its deny list, a missing field or a cost that is too high", async () => {
    const limiter = limiterWith({
      rules: [
        { name: "list", limit: 5, window: "1m", field: "header:key", deny: ["foe"], shadow: true },
        { name: "user", limit: 5, window: "1m", field: "header:user", onMissing: "deny", shadow: true },
        { name: "dear", field: "service", limit: 1, window: "1m", shadow: true },
        { name: "real", field: "service", limit: 5, window: "1m" },
      ],
    })
    const decision = await limiter.decide({ headers: { key: "foe" } }, { cost: 2 })
    expect(decision).toMatchObject({
      allowed: true,
      policy: "real",
      shadowed: ["list", "user", "dear"],
      remaining: 3,
    })
    expect(decision.checks).toMatchObject([
      { refusal: "denied", retryAfterMs: Number.POSITIVE_INFINITY },
      { refusal: "missing-field", field: "header:user" },
      { refusal: "cost", retryAfterMs: Number.POSITIVE_INFINITY },
      { allowed: true, remaining: 3 },
    ])
    await limiter.refund(decision)
    const { checks } = await limiter.peek({ headers: { key: "foe" } })
    expect(checks.at(-1)).toMatchObject({ policy: "real", remaining: 5 })
  })
})

describe("a counter", () => {
  const clock = manualClock()
  const same = { name: "rule", limit: 3, window: "1m", field: "ip" }

  /** Returns the policy that is passed to the store. */
  async function policyOf(rule: Partial<RateRule>, without: object = same): Promise<Policy> {
    const storeChecks: Policy[] = []
    const inner = memoryStore({ clock })
    const store: Store = {
      ...methodsOf(inner),
      take: (checks) => {
        for (const { policy } of checks) storeChecks.push(policy)
        return inner.take(checks)
      },
    }
    const rules = [{ ...without, ...rule }] as Rule[]
    await limiterWith({ rules, store }).decide(FROM("192.0.2.1"))
    return storeChecks[0] as Policy
  }

  /** Returns the 96-bit name, which no later version may change, because another name would start new counters. */
  function counterOf(algorithm: unknown, ...more: readonly unknown[]): string {
    const identity = JSON.stringify(["default", "rule", ["ip"], algorithm, 60_000, "epoch", ...more])
    return createHash("sha256").update(identity).digest("base64url").slice(0, 16)
  }

  it("keeps its name from before buckets and refill existed, if the rule uses neither", async () => {
    expect(await policyOf({})).toEqual({
      name: "rule",
      counter: counterOf("sliding-window"),
      algorithm: "sliding-window",
      limit: 3,
      windowMs: 60_000,
      align: "epoch",
    })
  })

  it("has a name of 96 bits, as does the counter of a penalty", async () => {
    const storeChecks: Policy[] = []
    const inner = memoryStore({ clock })
    const take: Store["take"] = (checks) => {
      for (const { policy } of checks) storeChecks.push(policy)
      return inner.take(checks)
    }
    const penalty = { refusals: 3, for: "1m" }
    const store = { ...methodsOf(inner), take }
    await limiterWith({ rules: [{ ...same, penalty }], store }).decide(FROM("192.0.2.1"))
    // Each character stands for 6 bits.
    expect(storeChecks.map(({ counter }) => counter)).toEqual([
      expect.stringMatching(/^[\w-]{16}$/),
      expect.stringMatching(/^[\w-]{16}$/),
    ])
    expect(storeChecks[0]?.counter).not.toBe(storeChecks[1]?.counter)
  })

  it.each<[Partial<RateRule>, readonly unknown[]]>([
    [{ algorithm: "sliding-window-strict", buckets: 30 }, [30, "continuous"]],
    [{ algorithm: "token-bucket", refill: "periodic" }, [0, "periodic"]],
  ])("of %j has a stable name that includes both fields", async (rule, more) => {
    expect((await policyOf(rule)).counter).toBe(counterOf(rule.algorithm, ...more))
  })

  it.each<[Partial<RateRule>, Partial<RateRule>, boolean]>([
    [{ algorithm: "sliding-window-strict" }, { algorithm: "sliding-window-strict", buckets: 60 }, true],
    [{ algorithm: "sliding-window-strict" }, { algorithm: "sliding-window-strict", buckets: 61 }, false],
    [{ algorithm: "token-bucket" }, { algorithm: "token-bucket", refill: "continuous", burst: 9 }, true],
    [{ algorithm: "token-bucket" }, { algorithm: "token-bucket", refill: "periodic" }, false],
    [{ algorithm: "leaky-bucket" }, { algorithm: "leaky-bucket", burst: 9, throttle: "hard" }, true],
    [{ buckets: 20 }, { buckets: 21 }, false],
  ])("of %j is the same as the counter of %j: %s", async (one, other, isSame) => {
    const [first, second] = [await policyOf(one), await policyOf(other)]
    expect(first.counter === second.counter).toBe(isSame)
  })

  it("of a rule with concurrent stays the same when concurrent changes, but not when hold changes", async () => {
    const five = { name: "rule", field: "ip", concurrent: 5 }
    const policy = await policyOf({}, five)
    expect(policy).toMatchObject({ algorithm: "in-flight", limit: 5, windowMs: 15_000 })
    expect(await policyOf({}, { ...five, concurrent: 9 })).toEqual({ ...policy, limit: 9 })
    expect((await policyOf({}, { ...five, hold: "31s" })).counter).not.toBe(policy.counter)
  })

  it("is read with the parameters of its algorithm", async () => {
    expect(await policyOf({ algorithm: "token-bucket", burst: 9, refill: "periodic" })).toMatchObject({
      burst: 9,
      refill: "periodic",
    })
    expect(await policyOf({ algorithm: "sliding-window-strict" })).toMatchObject({ buckets: 60 })
    expect(await policyOf({ limit: 500, throttle: { kind: "soft", percent: 5 } })).toMatchObject({
      extra: 25,
    })
  })
})
