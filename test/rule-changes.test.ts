import { describe, expect, it, onTestFinished } from "vitest"
import type { Decision } from "../packages/core/src/decision/decision.ts"
import { type ManualClock, manualClock } from "../packages/core/src/ground/manual-clock.ts"
import { createGuard } from "../packages/core/src/http/guard/create-guard.ts"
import { createLimiter } from "../packages/core/src/limiter/create-limiter.ts"
import type { RequestFacts } from "../packages/core/src/request/request.ts"
import type { RateRule, Rule } from "../packages/core/src/rules/rule.ts"
import { memoryStore } from "../packages/core/src/stores/memory/memory-store.ts"
import type { Store } from "../packages/core/src/stores/store.ts"
import { methodsOf } from "../packages/core/src/stores/testing/methods-of.ts"
import { redisStore } from "../packages/redis/src/redis-store.ts"
import { TableSource } from "./rule-book/hand-made-source.ts"
import { redisForTests } from "./servers/redis-for-tests.ts"

const ANN: RequestFacts = { remoteAddress: "192.0.2.1", headers: { "x-user": "ann" } }

const { client } = await redisForTests()
let made = 0

/** Returns a rule with a window of four weeks, so that no test reaches the window's end by the server's time. */
const rule = (limit: number, more: Partial<RateRule> = {}): RateRule => ({
  name: "rule",
  limit,
  window: "4 weeks",
  field: "ip",
  ...more,
})

interface Place {
  readonly name: string
  create(clock: ManualClock): Store
  /** True if the store uses the test's clock. */
  readonly isOnAClock: boolean
}

const redisOf = (clock?: ManualClock): Store =>
  redisStore({
    client,
    prefix: `${made++}:`,
    timeoutMs: 10_000,
    denyCacheMs: 60_000,
    ...(clock && { clock }),
  })

const PLACES: readonly Place[] = [
  { name: "memory", create: (clock) => memoryStore({ clock }), isOnAClock: true },
  { name: "Redis on the server's clock", create: () => redisOf(), isOnAClock: false },
  { name: "Redis on a test clock", create: (clock) => redisOf(clock), isOnAClock: true },
]

describe.each(PLACES)("with counters in $name,", ({ create, isOnAClock }) => {
  function setUp(rules: readonly Rule[], wrap: (store: Store) => Store = (store) => store) {
    const clock = manualClock()
    const source = new TableSource({ checkout: { rules } })
    const inner = create(clock)
    const limiter = createLimiter({
      rules: source,
      onRulesMissing: "allow",
      service: "checkout",
      store: wrap(inner),
      storeTimeoutMs: 10_000,
      clock,
      logger: { warn() {}, error() {} },
    })
    onTestFinished(async () => {
      await limiter.close()
      await inner.close()
    })
    const change = async (...changed: readonly Rule[]) => {
      source.stored.set("checkout", { rules: changed })
      await limiter.refresh()
    }
    const take = (cost: number): Promise<Decision> => limiter.decide(ANN, { cost })
    return { clock, limiter, change, take }
  }

  it("a change of the limit keeps the counts, and a higher limit admits clients that were refused before", async () => {
    const { change, take } = setUp([rule(5)])
    expect(await take(5)).toMatchObject({ allowed: true, remaining: 0 })
    // Send two requests, because the store may cache the second refusal.
    for (let times = 0; times < 2; times++) expect(await take(1)).toMatchObject({ allowed: false, limit: 5 })
    await change(rule(8))
    expect(await take(1)).toMatchObject({ allowed: true, limit: 8, remaining: 2 })
    expect(await take(3)).toMatchObject({ allowed: false, remaining: 2 })
    await change(rule(9))
    expect(await take(3)).toMatchObject({ allowed: true, remaining: 0 })
  })

  it("a change to a limit below the counts leaves 0 units remaining, and never fewer", async () => {
    const { limiter, change, take } = setUp([rule(10)])
    await take(8)
    await change(rule(2))
    expect(await limiter.peek(ANN)).toMatchObject({ allowed: false, limit: 2, remaining: 0 })
    const refused = await take(1)
    expect(refused).toMatchObject({ allowed: false, limit: 2, remaining: 0, refusal: "quota" })
    expect(refused.retryAfterMs).toBeGreaterThan(0)
    expect(refused.retryAfterMs).toBeLessThan(2 * 28 * 86_400_000)
    // Change it back. The units that were taken are still counted.
    await change(rule(10))
    expect(await take(2)).toMatchObject({ allowed: true, remaining: 0 })
  })

  it.each(isOnAClock ? (["sliding-window", "fixed-window"] as const) : [])(
    "a lower limit makes a client wait exactly as long as the refusal says: %s",
    async (algorithm) => {
      const window = "1 minute"
      const { clock, change, take } = setUp([rule(10, { algorithm, window })])
      await take(8)
      await change(rule(2, { algorithm, window }))
      const { retryAfterMs } = await take(1)
      clock.advance(retryAfterMs - 1)
      expect(await take(1)).toMatchObject({ allowed: false, retryAfterMs: 1 })
      clock.advance(1)
      expect(await take(1)).toMatchObject({ allowed: true, limit: 2 })
    },
  )

  it.each<[string, Rule, Rule]>([
    ["window", rule(5), rule(5, { window: "3 weeks" })],
    ["algorithm", rule(5), rule(5, { algorithm: "fixed-window" })],
    ["field", rule(5), rule(5, { field: "header:x-user" })],
    [
      "alignment",
      rule(5, { algorithm: "fixed-window" }),
      rule(5, { algorithm: "fixed-window", align: "first-hit" }),
    ],
    ["number of sub-windows", rule(5), rule(5, { buckets: 7 })],
    [
      "number of strict sub-windows",
      rule(5, { algorithm: "sliding-window-strict" }),
      rule(5, { algorithm: "sliding-window-strict", buckets: 59 }),
    ],
    [
      "refill",
      rule(5, { algorithm: "token-bucket" }),
      rule(5, { algorithm: "token-bucket", refill: "periodic" }),
    ],
  ])(
    "a change to another %s starts new counts, and the change back restores the old counts",
    async (_what, one, other) => {
      const { change, take } = setUp([one])
      await take(3)
      await change(other)
      expect(await take(1)).toMatchObject({ allowed: true, remaining: 4 })
      await change(one)
      expect(await take(1)).toMatchObject({ allowed: true, remaining: 1 })
    },
  )

  it.each<[string, Partial<RateRule>]>([
    ["rejection message", { rejectionMessage: "later" }],
    ["rejection", { rejection: { status: 503, body: "later" } }],
    ["cost", { cost: 2 }],
    ["match", { match: { methods: ["GET"] } }],
    ["onStoreFailure", { onStoreFailure: "deny" }],
    ["deny list", { deny: ["203.0.113.9"] }],
  ])("a change to another %s keeps the counts", async (_what, more) => {
    const { change, limiter, take } = setUp([rule(9)])
    await take(3)
    await change(rule(9, more))
    expect(await limiter.peek({ ...ANN, method: "GET" })).toMatchObject({ remaining: 6 })
  })

  it.each<[string, Partial<RateRule>]>([
    ["soft", { throttle: { kind: "soft", percent: 20 } }],
    ["a queue", { throttle: { kind: "queue" } }],
    ["elastic", { throttle: { kind: "elastic", ceiling: 90, signal: () => false } }],
  ])("a change of the throttle to %s keeps the counts, like the change back to hard", async (_kind, more) => {
    const { change, limiter, take } = setUp([rule(9)])
    await take(3)
    await change(rule(9, more))
    await take(2)
    await change(rule(9))
    expect(await limiter.peek(ANN)).toMatchObject({ remaining: 4 })
  })

  it("a soft throttle admits more units, even just after a refusal, until the rule is hard again", async () => {
    const { change, take } = setUp([rule(10)])
    await take(10)
    for (let times = 0; times < 2; times++) expect(await take(1)).toMatchObject({ allowed: false })
    await change(rule(10, { throttle: { kind: "soft", percent: 20 } }))
    expect((await take(2)).checks).toMatchObject([
      { allowed: true, overLimit: true, remaining: 0, limit: 10 },
    ])
    expect(await take(1)).toMatchObject({ allowed: false })
    await change(rule(10))
    expect(await take(1)).toMatchObject({ allowed: false, remaining: 0 })
  })

  it.each(["token-bucket", "leaky-bucket"] as const)(
    "a change of the burst keeps the units in a %s",
    async (algorithm) => {
      const more: Partial<RateRule> = { algorithm, throttle: "hard" }
      const { change, take } = setUp([rule(5, more)])
      await take(5)
      expect(await take(1)).toMatchObject({ allowed: false })
      await change(rule(5, { ...more, burst: 8 }))
      expect(await take(2)).toMatchObject({ allowed: true, remaining: 1 })
      await change(rule(5, { ...more, burst: 2 }))
      expect(await take(1)).toMatchObject({ allowed: false, remaining: 0 })
    },
  )

  it("a soft shadow rule counts up to its soft limit, never refuses, and reports when it would have refused", async () => {
    const soft: Partial<RateRule> = { throttle: { kind: "soft", percent: 20 }, shadow: true }
    const { take } = setUp([rule(100, { name: "real" }), rule(10, soft)])
    expect((await take(10)).checks[1]).toMatchObject({ allowed: true, overLimit: false, remaining: 0 })
    expect((await take(2)).checks[1]).toMatchObject({ allowed: true, overLimit: true, remaining: 0 })
    expect(await take(1)).toMatchObject({ allowed: true, policy: "real", shadowed: ["rule"] })
  })

  it("a rule that is removed and added again keeps its counts", async () => {
    const { change, take } = setUp([rule(5), rule(100, { name: "other" })])
    await take(3)
    await change(rule(100, { name: "other" }))
    expect(await take(1)).toMatchObject({ policy: "other", remaining: 96 })
    await change()
    expect(await take(1)).toMatchObject({ policy: "", checks: [] })
    await change(rule(5))
    expect(await take(1)).toMatchObject({ policy: "rule", remaining: 1 })
  })

  /** Returns a wrapper for a store whose results wait for the test. */
  function slow() {
    const waiting: (() => void)[] = []
    const wrap = (inner: Store): Store => ({
      ...methodsOf(inner),
      take: (checks, timeoutMs) =>
        new Promise((resolve, reject) => {
          waiting.push(() => Promise.resolve(inner.take(checks, timeoutMs)).then(resolve, reject))
        }),
    })
    const release = () => {
      for (const answer of waiting.splice(0)) answer()
    }
    return { wrap, release }
  }

  it("a pending decision and its refund use the rules from before a change", async () => {
    const { wrap, release } = slow()
    const { limiter, change, take } = setUp([rule(5)], wrap)
    await limiter.ready()
    const inFlight = take(3)
    await change(rule(9, { window: "3 weeks" }))
    release()
    const decision = await inFlight
    expect(decision).toMatchObject({ limit: 5, remaining: 2 })
    const next = take(1)
    release()
    expect(await next).toMatchObject({ limit: 9, remaining: 8 })

    await limiter.refund(decision)
    expect(await limiter.peek(ANN)).toMatchObject({ limit: 9, remaining: 8 })
    await change(rule(5))
    expect(await limiter.peek(ANN)).toMatchObject({ limit: 5, remaining: 5 })
  })

  it("a pending request gets the response of the rules from before a change", async () => {
    const { wrap, release } = slow()
    const { limiter, change } = setUp([rule(5, { rejectionMessage: "old" })], wrap)
    const guard = createGuard<RequestFacts>({ limiter })
    await limiter.ready()
    const used = limiter.decide(ANN, { cost: 5 })
    release()
    await used
    const inFlight = guard.check(ANN, { ...ANN })
    await change(rule(50, { name: "new" }))
    release()
    const { headers, rejection } = await inFlight
    expect(headers[0]).toEqual(["RateLimit-Policy", `"rule";q=5;w=${28 * 86_400}`])
    expect(JSON.parse(rejection?.body ?? "{}")).toMatchObject({
      "violated-policies": ["rule"],
      rejection: "old",
    })
  })

  it("the first request is decided under the rules for which it has waited", async () => {
    const { limiter } = setUp([rule(5)])
    const guard = createGuard<RequestFacts>({ limiter })
    const { headers, decision } = await guard.check(ANN, { ...ANN })
    expect(decision).toMatchObject({ policy: "rule", remaining: 4 })
    expect(headers[0]).toEqual(["RateLimit-Policy", `"rule";q=5;w=${28 * 86_400}`])
  })

  it("a shadow rule counts and reports without refusing, and keeps its counts when it is enforced", async () => {
    const { limiter, change, take } = setUp([rule(100, { name: "real" }), rule(3, { shadow: true })])
    const told: (readonly string[])[] = []
    limiter.on("decision", ({ shadowed }) => told.push(shadowed))
    for (const shadowed of [[], [], [], ["rule"], ["rule"]]) {
      expect(await take(1)).toMatchObject({ allowed: true, policy: "real", shadowed })
    }
    expect(told).toEqual([[], [], [], ["rule"], ["rule"]])
    expect((await limiter.peek(ANN)).checks).toMatchObject([
      { policy: "real", remaining: 95 },
      { policy: "rule", shadow: true, remaining: 0, allowed: false, limit: 3 },
    ])
    await change(rule(100, { name: "real" }), rule(4))
    expect(await take(1)).toMatchObject({ allowed: true, policy: "rule", remaining: 0, shadowed: [] })
    expect(await take(1)).toMatchObject({ allowed: false, policy: "rule", remaining: 0 })
    await change(rule(100, { name: "real" }), rule(4, { shadow: true }))
    expect(await take(1)).toMatchObject({ allowed: true, policy: "real", remaining: 93, shadowed: ["rule"] })
  })
})
