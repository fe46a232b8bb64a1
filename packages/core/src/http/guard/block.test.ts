import { describe, expect, it } from "vitest"
import type { Decision } from "../../decision/decision.ts"
import { InvalidOptionError, StoreUnavailableError } from "../../ground/errors.ts"
import { type ManualClock, manualClock } from "../../ground/manual-clock.ts"
import { createLimiter } from "../../limiter/create-limiter.ts"
import type { Limiter } from "../../limiter/interface/limiter.ts"
import type { LimiterOptions, LimiterSettings } from "../../limiter/options/options.ts"
import type { RequestFacts } from "../../request/request.ts"
import { memoryStore } from "../../stores/memory/memory-store.ts"
import type { Store } from "../../stores/store.ts"
import { methodsOf } from "../../stores/testing/methods-of.ts"
import { createGuard } from "./create-guard.ts"

const HOUR = 3_600_000
const ALICE: RequestFacts = { remoteAddress: "192.0.2.1" }
const BOB: RequestFacts = { remoteAddress: "192.0.2.2" }
const QUIET = { warn() {}, error() {} }

interface Opened {
  readonly clock: ManualClock
  readonly limiter: Limiter<RequestFacts>
}

function open(options: LimiterSettings<RequestFacts> = { limit: 3, window: "1 minute" }): Opened {
  const clock = manualClock()
  return {
    clock,
    limiter: createLimiter({
      ...{ clock, logger: QUIET, store: memoryStore({ clock }) },
      ...options,
    } as LimiterOptions<RequestFacts>),
  }
}

type Told = [allowed: boolean, refusal: string | undefined, retryAfterMs: number, remaining: number]

function told({ allowed, refusal, retryAfterMs, remaining }: Decision): Told {
  return [allowed, refusal, retryAfterMs, remaining]
}

describe("a block", () => {
  it("refuses one client until its time has passed, and other clients are admitted", async () => {
    const { limiter, clock } = open()
    await limiter.decide(ALICE)
    await limiter.block(ALICE, { for: "1 hour" })
    expect(told(await limiter.decide(ALICE))).toEqual([false, "blocked", HOUR, 0])
    expect(told(await limiter.decide(BOB))).toEqual([true, undefined, 0, 2])
    clock.advance(HOUR - 1)
    expect(told(await limiter.peek(ALICE))).toEqual([false, "blocked", 1, 0])
    expect(told(await limiter.decide(ALICE))).toEqual([false, "blocked", 1, 0])
    clock.advance(1)
    expect(told(await limiter.decide(ALICE))).toEqual([true, undefined, 0, 2])
  })

  it("does not change the client's counts, which apply again when the block ends", async () => {
    const { limiter, clock } = open({ limit: 3, window: "1 day", algorithm: "fixed-window" })
    await limiter.decide(ALICE, { cost: 2 })
    await limiter.block(ALICE, { for: 60_000 })
    await limiter.decide(ALICE)
    clock.advance(60_000)
    expect(told(await limiter.decide(ALICE))).toEqual([true, undefined, 0, 0])
  })

  it("is extended by a longer block, and not shortened by a shorter block", async () => {
    const { limiter, clock } = open()
    await limiter.block(ALICE, { for: "1 minute" })
    clock.advance(30_000)
    await limiter.block(ALICE, { for: "1 hour" })
    expect((await limiter.decide(ALICE)).retryAfterMs).toBe(HOUR)
    await limiter.block(ALICE, { for: "1 minute" })
    expect((await limiter.decide(ALICE)).retryAfterMs).toBe(HOUR)
    await limiter.unblock(ALICE)
    await limiter.block(ALICE, { for: "1 minute" })
    expect((await limiter.decide(ALICE)).retryAfterMs).toBe(60_000)
  })

  it.each([
    "sliding-window",
    "sliding-window-strict",
    "sliding-log",
    "fixed-window",
    "token-bucket",
  ] as const)("can last a year under %s", async (algorithm) => {
    const { limiter, clock } = open({ limit: 3, window: "1 second", algorithm })
    await limiter.block(ALICE, { for: "366 days" })
    clock.advance(366 * 24 * HOUR - 1)
    expect(told(await limiter.decide(ALICE))).toEqual([false, "blocked", 1, 0])
    expect((await limiter.decide(ALICE)).degraded).toBe(false)
  })

  it("applies to the named rules, or by default to the rules that count each client separately", async () => {
    const rules = [
      { name: "ip", field: "ip", limit: 3, window: "1 minute" },
      { name: "user", field: "user", limit: 3, window: "1 minute" },
      { name: "all", field: "service", limit: 100, window: "1 minute" },
      { name: "trial", field: "ip", limit: 3, window: "1 minute", shadow: true },
    ]
    const { limiter } = open({ rules, fields: { user: ({ query }) => query as unknown as string } })
    const asked = { ...ALICE, query: "ada" } as RequestFacts
    const refusing = async (request: RequestFacts) =>
      (await limiter.decide(request)).checks.filter(({ allowed }) => !allowed).map(({ policy }) => policy)
    await limiter.block(asked, { for: "1 hour", rules: ["user"] })
    expect(await refusing(asked)).toEqual(["user"])
    expect(await refusing({ ...BOB, query: "ada" } as RequestFacts)).toEqual(["user"])
    expect(await refusing({ ...ALICE, query: "eve" } as RequestFacts)).toEqual([])
    await limiter.unblock(asked)
    await limiter.block(asked, { for: "1 hour" })
    expect(await refusing(asked)).toEqual(["ip", "user"])
    await limiter.block(asked, { for: "1 hour", rules: ["all"] })
    expect(await refusing({ ...BOB, query: "bob" } as RequestFacts)).toEqual(["all"])
    await limiter.unblock(BOB, { rules: ["all"] })
    expect(await refusing({ ...BOB, query: "bob" } as RequestFacts)).toEqual([])
  })

  it("ends with unblock, which keeps the counts, or with reset, which removes the counts", async () => {
    const { limiter } = open()
    await limiter.decide(ALICE)
    await limiter.block(ALICE, { for: "1 hour" })
    await limiter.unblock(ALICE)
    expect(told(await limiter.decide(ALICE))).toEqual([true, undefined, 0, 1])
    await limiter.block(ALICE, { for: "1 hour" })
    await limiter.reset(ALICE)
    expect(told(await limiter.decide(ALICE))).toEqual([true, undefined, 0, 2])
  })

  it("is independent of a penalty, but unblock ends both", async () => {
    const penalty = { refusals: 2, for: "10 minutes" }
    const { limiter, clock } = open({ limit: 1, window: "1 second", penalty })
    await limiter.block(ALICE, { for: "1 minute" })
    for (let i = 0; i < 5; i++) await limiter.decide(ALICE)
    clock.advance(60_000)
    for (let i = 0; i < 3; i++) await limiter.decide(ALICE)
    expect(await limiter.decide(ALICE)).toMatchObject({ refusal: "penalty", retryAfterMs: 600_000 })
    await limiter.block(ALICE, { for: "1 minute" })
    expect(await limiter.decide(ALICE)).toMatchObject({ refusal: "penalty", retryAfterMs: 600_000 })
    await limiter.unblock(ALICE)
    clock.advance(2_000)
    expect(await limiter.decide(ALICE)).toMatchObject({ allowed: true })
  })

  it("delays a request under a queueing rule until the block ends, if the request may wait so long", async () => {
    const throttle = { kind: "queue", maxWaitMs: 5_000 } as const
    const { limiter, clock } = open({ limit: 3, window: "1 minute", throttle })
    await limiter.block(ALICE, { for: "2 seconds" })
    const held = limiter.acquire(ALICE, { maxWaitMs: 5_000 })
    await new Promise((resolve) => setImmediate(resolve))
    clock.advance(2_000)
    expect(await held).toMatchObject({ allowed: true })
    await limiter.block(ALICE, { for: "1 hour" })
    await expect(limiter.acquire(ALICE, { maxWaitMs: 5_000 })).rejects.toMatchObject({
      decision: { refusal: "blocked", retryAfterMs: HOUR },
    })
    const waiting = limiter.acquire(ALICE)
    await limiter.unblock(ALICE)
    expect(await waiting).toMatchObject({ allowed: true })
  })

  it("is not evicted from a full memory store by a flood of other clients", async () => {
    const clock = manualClock()
    const { limiter } = open({
      limit: 3,
      window: "1 day",
      store: memoryStore({ clock, maxKeys: 100 }),
      clock,
    })
    await limiter.block(ALICE, { for: "1 hour" })
    for (let i = 0; i < 2_000; i++) {
      clock.advance(1)
      await limiter.decide({ remoteAddress: `10.0.${i >> 8}.${i & 255}` })
    }
    expect(await limiter.decide(ALICE)).toMatchObject({ refusal: "blocked", retryAfterMs: HOUR - 2_000 })
  })

  it("causes no additional peek when another client calls acquire()", async () => {
    const clock = manualClock()
    const inner = memoryStore({ clock })
    let peeks = 0
    const store: Store = {
      ...methodsOf(inner),
      read(checks) {
        peeks++
        return inner.read(checks)
      },
    }
    const { limiter } = open({ limit: 3, window: "1 minute", store, clock })
    await limiter.block(ALICE, { for: "1 hour" })
    await limiter.acquire(BOB)
    peeks = 0
    await limiter.acquire(BOB)
    expect(peeks).toBe(0)
  })

  it("adds a check to each decision up to the first decision after the block has ended", async () => {
    const clock = manualClock()
    const inner = memoryStore({ clock })
    const asked: number[] = []
    const store: Store = {
      ...methodsOf(inner),
      take(checks) {
        asked.push(checks.length)
        return inner.take(checks)
      },
    }
    const { limiter } = open({ limit: 3, window: "1 minute", store, clock })
    await limiter.decide(BOB)
    await limiter.block(ALICE, { for: "1 hour" })
    await limiter.decide(BOB)
    clock.advance(HOUR)
    // The first decision after the block detects that the block has ended.
    for (let i = 0; i < 2; i++) await limiter.decide(BOB)
    expect(asked).toEqual([1, 2, 2, 1])
  })

  it("adds no check to the decisions of another service in the same shared store", async () => {
    const clock = manualClock()
    const inner = memoryStore({ clock })
    const asked: number[] = []
    const store: Store = {
      ...methodsOf(inner),
      isShared: true,
      take(checks) {
        asked.push(checks.length)
        return inner.take(checks)
      },
    }
    const [shop, search] = ["shop", "search"].map((service) =>
      open({ limit: 3, window: "1 minute", store, clock, service }),
    ) as [Opened, Opened]
    await shop.limiter.block(ALICE, { for: "1 hour" })
    // The first decision reads whether clients of the service are blocked.
    for (let i = 0; i < 2; i++) await search.limiter.decide(BOB)
    expect(asked).toEqual([1, 1])
  })

  it("cannot be created with invalid options, or for a client that no rule counts separately", async () => {
    const { limiter } = open({ rules: [{ name: "all", field: "service", limit: 3, window: "1 minute" }] })
    await expect(limiter.block(ALICE, undefined as never)).rejects.toThrow("for: is missing")
    await expect(limiter.block(ALICE, { for: "soon" })).rejects.toThrow('for: "soon" is not a duration')
    await expect(limiter.block(ALICE, { for: "367 days" })).rejects.toThrow(
      /for: "367 days" is too long; accepted: .* "1 minute".*; at most 366d/,
    )
    await expect(limiter.block(ALICE, { for: 1, rules: ["one"] })).rejects.toThrow(
      'rules: "one" is not the name of a rule; accepted: a list of these names: "all"',
    )
    await expect(limiter.block(ALICE, { for: 1, rule: "all" } as never)).rejects.toThrow(
      '"rule" is not an option of block(); did you mean "rules"?',
    )
    await expect(limiter.unblock(ALICE, { rule: "all" } as never)).rejects.toThrow(
      '"rule" is not an option of unblock(); did you mean "rules"?',
    )
    await expect(limiter.block(ALICE, { for: 1 })).rejects.toThrow(
      /the request has the rule's field .* not a shadow rule; .* name the rule in "rules"/,
    )
    await limiter.close()
    await expect(limiter.block(ALICE, { for: 1 })).rejects.toThrow("The limiter has been closed.")
  })

  it("cannot be created for a client that no rule could refuse", async () => {
    const rules = [
      { name: "listed", field: "ip", limit: 3, window: "1 minute", allow: ["192.0.2.1"] },
      {
        ...{ name: "by-plan", field: "ip", window: "1 minute" },
        limit: ({ method }: RequestFacts) => (method === "VIP" ? Number.POSITIVE_INFINITY : 3),
      },
      { name: "trial", field: "ip", limit: 3, window: "1 minute", shadow: true },
    ]
    const { limiter } = open({ rules })
    const vip = { ...ALICE, method: "VIP" }
    const blocks = async (names: readonly string[]) => limiter.block(vip, { for: "1 hour", rules: names })
    for (const name of ["listed", "by-plan", "trial"]) {
      await expect(blocks([name])).rejects.toThrow("request: is not limited by any of these rules")
    }
    await expect(limiter.block(vip, { for: "1 hour" })).rejects.toThrow(InvalidOptionError)
    // One rule that limits the client is enough to block it.
    await limiter.block(ALICE, { for: "1 hour" })
    expect((await limiter.decide(ALICE)).checks.map(({ policy, refusal }) => [policy, refusal])).toEqual([
      ["by-plan", "blocked"],
      ["trial", undefined],
    ])
  })

  it.each<[string, object, object]>([
    ["no facts", {}, {}],
    ["an invalid address", { remoteAddress: "alice" }, {}],
    ["the address under another name", { ip: "192.0.2.1" }, {}],
    ["neither the field nor an address", {}, { field: "header:x-api-key" }],
    [
      "only a part of the combination",
      { headers: { "x-api-key": "7" } },
      { field: ["ip", "header:x-api-key"] },
    ],
  ])(
    "cannot be created for a request with %s, because it identifies no client",
    async (_what, request, options) => {
      const rule = { name: "one", limit: 3, window: "1 minute", ...options }
      const { limiter } = open(rule as LimiterSettings<RequestFacts>)
      for (const rules of [undefined, ["one"]]) {
        await expect(limiter.block(request, { for: "1 hour", rules })).rejects.toThrow(
          "request: is not limited by any of these rules, so a block would have no effect",
        )
      }
      expect((await limiter.decide(request)).allowed).toBe(true)
    },
  )

  it("applies only to rules whose field the request contains", async () => {
    const rules = [
      { name: "address", field: "ip", limit: 3, window: "1 minute" },
      { name: "key", field: "header:x-api-key", limit: 3, window: "1 minute" },
    ]
    const { limiter } = open({ rules })
    const key = { headers: { "x-api-key": "7" } }
    await limiter.block(key, { for: "1 hour" })
    expect(await limiter.decide({ ...key, ...ALICE })).toMatchObject({ policy: "key", refusal: "blocked" })
    expect((await limiter.decide({ headers: { "x-api-key": "8" } })).allowed).toBe(true)
  })

  it("applies to all requests without the field if onMissing makes them share a counter", async () => {
    const { limiter } = open({ field: "header:x-api-key", limit: 3, window: "1 minute", onMissing: "shared" })
    await limiter.block(ALICE, { for: "1 hour" })
    expect((await limiter.decide(BOB)).refusal).toBe("blocked")
  })

  it("applies to all requests without the field, even if another rule counts them by address", async () => {
    const rule = { field: "header:x-api-key", limit: 3, window: "1 minute" }
    const { limiter } = open({
      rules: [
        { ...rule, name: "by-address" },
        { ...rule, name: "together", onMissing: "shared" },
      ],
    })
    await limiter.block({}, { for: "1 hour" })
    expect(await limiter.decide(BOB)).toMatchObject({ policy: "together", refusal: "blocked" })
  })

  it("cannot be created for a request without the field if onMissing refuses such requests", async () => {
    const { limiter } = open({ field: "header:x-api-key", limit: 3, window: "1 minute", onMissing: "deny" })
    await expect(limiter.block(ALICE, { for: "1 hour" })).rejects.toThrow(
      "request: is not limited by any of these rules",
    )
  })

  it("cannot be created while the store is down, and the error says to call block again", async () => {
    const failing = (): never => {
      throw new StoreUnavailableError("Gone.", { kind: "unreachable" } as never)
    }
    const store: Store = { take: failing, read: failing, refund: failing, reset: failing, close() {} }
    const { limiter } = open({ limit: 3, window: "1 minute", store })
    await expect(limiter.block(ALICE, { for: "1 hour" })).rejects.toThrow("You can call block again.")
    await expect(limiter.unblock(ALICE)).rejects.toThrow(
      "It is unknown whether the client was unblocked. You can call unblock again.",
    )
    expect(await limiter.decide(ALICE)).toMatchObject({ allowed: true, degraded: true })
  })
})

describe("a block in a shared store", () => {
  it("takes effect in another process after its first decision a second later", async () => {
    const clock = manualClock()
    const inner = memoryStore({ clock })
    let looks = 0
    // Creates stores that share one counter table, as the stores of two processes do.
    const shared = (): Store => ({
      ...methodsOf(inner),
      isShared: true,
      read(checks) {
        looks++
        return inner.read(checks)
      },
    })
    const [here, there] = [shared(), shared()].map((store) =>
      createLimiter({ limit: 3, window: "1 minute", service: "shop", store, clock, logger: QUIET }),
    ) as [Limiter, Limiter]
    await there.decide(BOB)
    await here.block(ALICE, { for: "1 hour" })
    clock.advance(1_000)
    await there.decide(BOB)
    expect(await there.decide(ALICE)).toMatchObject({ refusal: "blocked", retryAfterMs: HOUR - 1_000 })
    looks = 0
    for (let i = 0; i < 10; i++) await there.decide(BOB)
    expect(looks).toBe(0)
    await here.unblock(ALICE)
    expect(await there.decide(ALICE)).toMatchObject({ allowed: true })
  })

  it("takes effect in a new process after its first decision", async () => {
    const clock = manualClock()
    const inner = memoryStore({ clock })
    const start = () => {
      const store = { ...methodsOf(inner), isShared: true }
      return createLimiter({ limit: 3, window: "1 minute", service: "shop", store, clock, logger: QUIET })
    }
    const here = start()
    await here.block(ALICE, { for: "1 hour" })
    await here.close()
    const there = start()
    await there.decide(BOB)
    expect(await there.decide(ALICE)).toMatchObject({ refusal: "blocked", retryAfterMs: HOUR })
  })
})

describe("peek with the option rules", () => {
  it("reads a named rule even if the rule does not match the request, and reports blocks", async () => {
    const rules = [
      { name: "orders", field: "ip", limit: 3, window: "1 minute", match: { path: "/orders" } },
      { name: "all", field: "service", limit: 100, window: "1 minute" },
    ]
    const { limiter } = open({ rules })
    await limiter.decide({ ...ALICE, method: "GET", url: "/orders" })
    expect((await limiter.peek(ALICE)).checks).toMatchObject([{ policy: "all" }])
    const look = async () => (await limiter.peek(ALICE, { rules: ["orders"] })).checks
    expect(await look()).toMatchObject([{ policy: "orders", remaining: 2, allowed: true }])
    await limiter.block(ALICE, { for: "1 hour", rules: ["orders"] })
    expect(await look()).toMatchObject([{ policy: "orders", refusal: "blocked", retryAfterMs: HOUR }])
    await expect(limiter.peek(ALICE, { rules: ["order"] })).rejects.toThrow("is not the name of a rule")
  })
})

describe("a client that is named by the rule of a route", () => {
  it("can be peeked, blocked and reset", async () => {
    const { limiter } = open()
    const guard = createGuard({ limiter })
    const route = guard.forRoute({ name: "login", limit: 2, window: "1 minute" }, { label: "login" })
    await route.check(ALICE, {})
    const client = limiter.client("login", ["192.0.2.1"])
    expect(await limiter.peek(client)).toMatchObject({ policy: "login", remaining: 1 })
    await limiter.block(client, { for: "1 hour" })
    expect(await limiter.peek(client)).toMatchObject({ refusal: "blocked", retryAfterMs: HOUR })
    await limiter.reset(client)
    expect(await limiter.peek(client)).toMatchObject({ remaining: 2 })
  })
})
