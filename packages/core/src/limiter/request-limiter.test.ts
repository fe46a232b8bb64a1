import { describe, expect, it } from "vitest"
import { type Decision, RateLimitExceededError } from "../decision/decision.ts"
import { ClosedError, InvalidOptionError } from "../ground/errors.ts"
import { manualClock } from "../ground/manual-clock.ts"
import type { RequestFacts } from "../request/request.ts"
import { memoryStore } from "../stores/memory/memory-store.ts"
import type { Check, Store } from "../stores/store.ts"
import { methodsOf } from "../stores/testing/methods-of.ts"
import { createLimiter } from "./create-limiter.ts"
import type { DecisionCall, Limiter } from "./interface/limiter.ts"
import type { LimiterOptions } from "./options/options.ts"

const MINUTE = 60_000
const ALICE: RequestFacts = { remoteAddress: "192.0.2.1" }
const BOB: RequestFacts = { remoteAddress: "192.0.2.2" }
const QUIET = { warn() {}, error() {} }

/** Returns a limiter that logs nothing, and its clock. */
function limiterWith(options: LimiterOptions<RequestFacts>) {
  const clock = manualClock()
  return { clock, limiter: createLimiter({ clock, logger: QUIET, ...options }) }
}

/** Returns a memory store that records the checks that are passed to it. */
function recordingStore(): { store: Store; takes: Check[][]; peeks: Check[][] } {
  const inner = memoryStore({ clock: manualClock() })
  const takes: Check[][] = []
  const peeks: Check[][] = []
  const store: Store = {
    ...methodsOf(inner),
    take(checks) {
      takes.push([...checks])
      return inner.take(checks)
    },
    read(checks) {
      peeks.push([...checks])
      return inner.read(checks)
    },
  }
  return { store, takes, peeks }
}

type Row = [atMs: number, cost: number, verdict: "admit" | "refuse", remaining: number, retryAfterMs: number]

async function ledger(
  { limiter, clock }: ReturnType<typeof limiterWith>,
  asked: readonly (readonly [atMs: number, cost: number])[],
): Promise<Row[]> {
  const startMs = clock.now()
  const rows: Row[] = []
  for (const [atMs, cost] of asked) {
    clock.set(startMs + atMs)
    const { allowed, remaining, retryAfterMs } = await limiter.decide(ALICE, { cost })
    rows.push([atMs, cost, allowed ? "admit" : "refuse", remaining, retryAfterMs])
  }
  return rows
}

async function remainingOf(limiter: Limiter, request: RequestFacts = ALICE): Promise<(number | undefined)[]> {
  return (await limiter.peek(request)).checks.map(({ remaining }) => remaining)
}

describe("one rule", () => {
  it("admits up to the limit, and reports the exact millisecond at which the refused request would be admitted", async () => {
    const rows = await ledger(limiterWith({ limit: 3, window: "1 minute" }), [
      [0, 1],
      [0, 2],
      [0, 1],
      [60_000, 1],
      [60_001, 1],
      [80_000, 1],
      [80_001, 1],
      [180_000, 4],
      [180_000, 3],
    ])
    expect(rows).toEqual([
      [0, 1, "admit", 2, 0],
      [0, 2, "admit", 0, 0],
      [0, 1, "refuse", 0, 60_001],
      [60_000, 1, "refuse", 0, 1],
      [60_001, 1, "admit", 0, 0],
      [80_000, 1, "refuse", 0, 1],
      [80_001, 1, "admit", 0, 0],
      [180_000, 4, "refuse", 0, Number.POSITIVE_INFINITY],
      [180_000, 3, "admit", 0, 0],
    ])
  })

  it("returns a complete decision when it admits", async () => {
    const { limiter, clock } = limiterWith({ limit: 10, window: "1 minute", name: "all" })
    await limiter.decide(ALICE, { cost: 4 })
    clock.advance(30_000)
    expect({ ...(await limiter.decide(ALICE, { cost: 2 })) }).toEqual({
      allowed: true,
      policy: "all",
      limit: 10,
      remaining: 4,
      cost: 2,
      retryAfterMs: 0,
      // The wait lasts to the end of the window, and then until the last of its 6 units no longer counts.
      resetAfterMs: 30_000 + 50_001,
      delayMs: 0,
      overLimit: false,
      degraded: false,
      shadowed: [],
      checks: [
        {
          policy: "all",
          unit: "requests",
          algorithm: "sliding-window",
          limit: 10,
          windowMs: MINUTE,
          remaining: 4,
          cost: 2,
          allowed: true,
          retryAfterMs: 0,
          // A cost of 5 fits when only 5 of the 6 units still count.
          nextUnitAfterMs: 30_000 + 1,
          resetAfterMs: 30_000 + 50_001,
          delayMs: 0,
          overLimit: false,
          shadow: false,
          ageMs: 0,
          counts: { previous: 0, current: 6, startMs: clock.now() - 30_000 },
        },
      ],
    })
  })

  it("returns a complete decision when it refuses, with the remaining units", async () => {
    const { limiter } = limiterWith({ limit: 10, window: "1 minute", rejectionMessage: "slow down" })
    await limiter.decide(ALICE, { cost: 8 })
    const { checks, ...decision } = await limiter.decide(ALICE, { cost: 3 })
    expect(decision).toEqual({
      allowed: false,
      policy: "ip-1m",
      limit: 10,
      remaining: 2,
      cost: 0,
      // 8 units are counted and 3 are requested, so the request fits when only 7 units still count.
      retryAfterMs: MINUTE + 1,
      resetAfterMs: MINUTE + 52_501,
      delayMs: 0,
      overLimit: false,
      degraded: false,
      refusal: "quota",
      rejectionMessage: "slow down",
      shadowed: [],
    })
    expect(checks).toMatchObject([
      { allowed: false, cost: 3, refusal: "quota", rejectionMessage: "slow down" },
    ])
  })

  it("counts each client separately, by address unless configured otherwise", async () => {
    const { limiter } = limiterWith({ limit: 1, window: "1m" })
    const verdicts: boolean[] = []
    for (const request of [ALICE, BOB, ALICE, {}, {}]) {
      verdicts.push((await limiter.decide(request)).allowed)
    }
    // All requests without an address share one counter.
    expect(verdicts).toEqual([true, true, false, true, false])
  })

  it.each([[], new Date(0), Object.create(null)])(
    "decides on %o, which has no known data",
    async (request) => {
      const { limiter } = limiterWith({ limit: 1, window: "1m" })
      expect(await limiter.decide(request)).toMatchObject({ allowed: true, remaining: 0 })
      expect(await limiter.decide(request)).toMatchObject({ allowed: false })
    },
  )

  it("survives facts of every invalid type", async () => {
    const { limiter } = limiterWith({
      rules: [
        {
          field: "service",
          limit: 1,
          window: "1m",
          match: { methods: ["GET"], path: "/a" },
          name: "matched",
        },
        { limit: 1, window: "1m", field: ["method", "route", "query:q", "body:b", "cookie:c", "header:h"] },
      ],
    })
    for (const odd of [5, null, true, [], {}, Symbol("s"), () => 1, Number.NaN]) {
      const request = { method: odd, url: odd, route: odd, headers: odd, query: odd, params: odd, body: odd }
      const facts = { ...request, cookies: odd, remoteAddress: odd }
      expect((await limiter.decide(facts as unknown as RequestFacts)).degraded).toBe(false)
    }
  })
})

describe("several rules", () => {
  const rules = [
    { name: "burst", limit: 3, window: "1 second", field: "ip" },
    { name: "daily", limit: 5, window: "1 day", field: "ip" },
  ]

  it.each<[string, [limit: number, cost: number][], cost: number, binding: string]>([
    [
      "the fewest further requests left, not the fewest units",
      [
        [9, 1],
        [20, 10],
      ],
      1,
      "b",
    ],
    [
      "the fewest further requests left, even if it comes first",
      [
        [20, 10],
        [9, 1],
      ],
      1,
      "a",
    ],
    [
      "the fewest units left if the request costs nothing",
      [
        [9, 1],
        [8, 4],
      ],
      0,
      "b",
    ],
  ])("the policy of an admission is the rule with %s", async (_what, limits, cost, binding) => {
    const names = ["a", "b"]
    const { limiter } = limiterWith({
      rules: limits.map(([limit, each], i) => ({
        name: names[i] as string,
        field: "service",
        limit,
        window: "1m",
        cost: each,
      })),
    })
    expect((await limiter.decide(ALICE, { cost })).policy).toBe(binding)
  })

  it("admits a request that no rule matches, without a limit and without a store call", async () => {
    const { store, takes } = recordingStore()
    const { limiter } = limiterWith({
      store,
      rules: [{ field: "service", limit: 1, window: "1m", match: { methods: ["POST"] } }],
    })
    expect(await limiter.decide({ method: "GET" })).toMatchObject({
      allowed: true,
      policy: "",
      limit: Number.POSITIVE_INFINITY,
      remaining: Number.POSITIVE_INFINITY,
      cost: 0,
      checks: [],
    })
    expect(takes).toEqual([])
  })

  it("calls the store once for all rules", async () => {
    const { store, takes } = recordingStore()
    const { limiter } = limiterWith({ store, rules })
    await limiter.decide(ALICE)
    expect(takes.map((checks) => checks.map(({ policy, cost }) => [policy.name, cost]))).toEqual([
      [
        ["burst", 1],
        ["daily", 1],
      ],
    ])
  })
})

describe("the cost of a request", () => {
  const rules = [
    { name: "single", field: "service", limit: 100, window: "1m" },
    { name: "triple", field: "service", limit: 100, window: "1m", cost: 3 },
  ]
  const costs = async (options: LimiterOptions<RequestFacts>, cost?: number) => {
    const { limiter } = limiterWith({ rules, ...options })
    return (await limiter.decide(ALICE, cost === undefined ? {} : { cost })).checks.map((check) => check.cost)
  }

  it("is 1, or the cost of the option, the function or the caller, times the cost of each rule", async () => {
    expect(await costs({})).toEqual([1, 3])
    expect(await costs({ cost: 2 })).toEqual([2, 6])
    expect(await costs({ cost: () => 4 })).toEqual([4, 12])
    expect(await costs({ cost: () => 4 }, 5)).toEqual([5, 15])
    expect(await costs({ cost: 2 }, 0)).toEqual([0, 0])
    expect(await costs({ cost: 0 })).toEqual([0, 0])
  })

  it("of 0 is admitted and takes nothing, even under an exhausted rule", async () => {
    const { limiter } = limiterWith({ limit: 1, window: "1m" })
    await limiter.decide(ALICE)
    expect(await limiter.decide(ALICE, { cost: 0 })).toMatchObject({ allowed: true, cost: 0, remaining: 0 })
    expect(await limiter.decide(ALICE)).toMatchObject({ allowed: false })
  })

  it.each([
    -1,
    1.5,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    2 ** 53,
    "2",
    null,
    {},
    Object.create(null),
    Symbol("s"),
  ])("is rejected if a caller's cost is invalid, %#, and takes nothing", async (cost) => {
    const { limiter } = limiterWith({ limit: 5, window: "1m" })
    for (const ask of ["decide", "enforce", "peek"] as const) {
      const error: unknown = await limiter[ask](ALICE, { cost: cost as number }).catch((thrown) => thrown)
      expect(error).toBeInstanceOf(InvalidOptionError)
      expect((error as InvalidOptionError).problems).toMatchObject([
        {
          path: "cost",
          message: expect.stringContaining("is not a cost"),
          accepted: "0 or a positive whole number",
        },
      ])
    }
    expect(await remainingOf(limiter)).toEqual([5])
  })

  it("is refused forever above the limit of any rule, without a store call", async () => {
    const { store, takes, peeks } = recordingStore()
    const { limiter } = limiterWith({
      store,
      rules: [
        { name: "wide", field: "service", limit: 1_000, window: "1m" },
        { name: "narrow", field: "service", limit: 10, window: "1m", cost: 3 },
      ],
    })
    const decision = await limiter.decide(ALICE, { cost: 4 })
    expect(decision).toMatchObject({
      allowed: false,
      policy: "narrow",
      refusal: "cost",
      cost: 0,
      retryAfterMs: Number.POSITIVE_INFINITY,
    })
    expect(decision.checks.map(({ policy }) => policy)).toEqual(["narrow"])
    expect((await limiter.peek(ALICE, { cost: 4 })).allowed).toBe(false)
    expect([takes, peeks]).toEqual([[], []])
    expect((await limiter.decide(ALICE, { cost: 3 })).allowed).toBe(true)
  })

  it("is capped below 2^53, however large both factors are", async () => {
    const { limiter } = limiterWith({ limit: 10, window: "1m", cost: () => 2 ** 52 })
    expect(await limiter.decide(ALICE)).toMatchObject({ allowed: false, refusal: "cost" })
    const { limiter: other } = limiterWith({
      rules: [{ field: "service", limit: 10, window: "1m", cost: 10 }],
    })
    const { checks } = await other.decide(ALICE, { cost: Number.MAX_SAFE_INTEGER })
    expect(checks[0]?.cost).toBe(Number.MAX_SAFE_INTEGER)
  })
})

describe("enforce", () => {
  it("resolves with the decision when it admits, and rejects with it when it refuses", async () => {
    const { limiter } = limiterWith({ limit: 1, window: "1m", name: "one" })
    expect(await limiter.enforce(ALICE)).toMatchObject({ allowed: true, cost: 1 })
    const error: unknown = await limiter.enforce(ALICE).catch((thrown) => thrown)
    expect(error).toBeInstanceOf(RateLimitExceededError)
    expect(error).toMatchObject({
      code: "SLUICE_RATE_LIMIT_EXCEEDED",
      name: "RateLimitExceededError",
      message: 'Refused by rate limit "one" (quota): retry after 60001 ms.',
      decision: { allowed: false, policy: "one" },
    })
  })

  it("rejects with a specific message if the request can never succeed", async () => {
    const { limiter } = limiterWith({ limit: 1, window: "1m", name: "one" })
    await expect(limiter.enforce(ALICE, { cost: 2 })).rejects.toThrow(
      'Refused by rate limit "one" (cost): this request can never succeed.',
    )
  })
})

describe("peek", () => {
  it("returns the decision of decide without taking anything, after a store call", async () => {
    const { store, takes, peeks } = recordingStore()
    const { limiter } = limiterWith({ store, limit: 2, window: "1m" })
    for (let i = 0; i < 3; i++) {
      expect(await limiter.peek(ALICE, { cost: 2 })).toMatchObject({ allowed: true, remaining: 2, cost: 0 })
    }
    expect([takes.length, peeks.length]).toEqual([0, 3])
    await limiter.decide(ALICE, { cost: 2 })
    expect(await limiter.peek(ALICE)).toMatchObject({ allowed: false, retryAfterMs: 60_001 })
  })

  it("returns a decision without a rule for a request that decide does not count", async () => {
    const skipping = limiterWith({ limit: 1, window: "1m", skip: ({ method }) => method === "HEAD" }).limiter
    const disabled = limiterWith({ limit: 1, window: "1m", enabled: false }).limiter
    expect((await skipping.peek({ method: "HEAD" })).policy).toBe("")
    expect((await skipping.peek({ method: "GET" })).policy).toBe("ip-1m")
    expect((await disabled.peek(ALICE)).policy).toBe("")
  })

  it("reads only the fields of the named rules", async () => {
    const read: string[] = []
    const fieldOf = (name: string) => () => {
      read.push(name)
      return "7"
    }
    const { limiter } = limiterWith({
      rules: [
        { name: "users", field: "user", limit: 5, window: "1m" },
        { name: "tenants", field: "tenant", limit: 5, window: "1m" },
      ],
      fields: { user: fieldOf("user"), tenant: fieldOf("tenant") },
    })
    expect((await limiter.peek(ALICE, { rules: ["users"] })).policy).toBe("users")
    expect(read).toEqual(["user"])
  })

  it("takes no units that a refund could return", async () => {
    const { limiter } = limiterWith({ limit: 3, window: "1m" })
    await limiter.decide(ALICE)
    await limiter.refund(await limiter.peek(ALICE))
    expect(await remainingOf(limiter)).toEqual([2])
  })
})

describe("enabled: false", () => {
  const same = { limit: 1, window: "1m", service: "shop", logger: QUIET } as const

  it.each(["before", "after"])(
    "claims no rule names, created %s an enabled limiter on the same store",
    async (when) => {
      const clock = manualClock()
      const store = memoryStore({ clock })
      const make = (enabled: boolean) => createLimiter<RequestFacts>({ ...same, store, clock, enabled })
      const first = make(when === "after")
      const second = make(when === "before")
      const [on, off] = when === "after" ? [first, second] : [second, first]
      expect((await on.decide(ALICE)).allowed).toBe(true)
      await off.decide(ALICE)
      await off.reset(ALICE)
      expect((await on.decide(ALICE)).allowed).toBe(false)
      await off.close()
      // Closing the disabled limiter does not release the names of the other limiter.
      expect(() => make(true)).toThrow(/another limiter already counts rule "ip-1m"/)
      await on.close()
      await make(true).close()
    },
  )

  it("calls no method of its store", async () => {
    const asked: string[] = []
    const inner = methodsOf(memoryStore())
    const called = (name: string) => () => {
      asked.push(name)
      throw new Error("a disabled limiter must not ask its store")
    }
    const names = ["take", "read", "refund", "reset", "close"]
    const store = { ...inner, ...Object.fromEntries(names.map((name) => [name, called(name)])) } as Store
    const limiter = createLimiter<RequestFacts>({ ...same, store, enabled: false, deny: ["192.0.2.1"] })
    const decision = await limiter.decide(ALICE)
    expect(decision).toMatchObject({ allowed: true, policy: "" })
    await limiter.peek(ALICE)
    await limiter.acquire(ALICE)
    await limiter.takeUpTo(ALICE, 5)
    await limiter.refund(decision)
    await limiter.reset(ALICE)
    await limiter.block(ALICE, { for: "1 hour" })
    await limiter.unblock(ALICE)
    await limiter.close()
    expect(asked).toEqual([])
  })
})

describe("refund", () => {
  const setUp = () =>
    limiterWith({
      rules: [
        { name: "minute", field: "service", limit: 10, window: "1 minute", cost: 2 },
        { name: "hour", field: "service", limit: 20, window: "1 hour" },
        { name: "trial", field: "service", limit: 1, window: "1 hour", shadow: true },
      ],
    })

  it("returns the units to every rule, once", async () => {
    const { limiter } = setUp()
    await limiter.decide(ALICE)
    const decision = await limiter.decide(ALICE, { cost: 2 })
    expect(await remainingOf(limiter)).toEqual([4, 17, 0])
    await limiter.refund(decision)
    expect(await remainingOf(limiter)).toEqual([8, 19, 0])
    await limiter.refund(decision)
    await Promise.all([limiter.refund(decision), limiter.refund(decision)])
    expect(await remainingOf(limiter)).toEqual([8, 19, 0])
  })

  it("returns nothing for a refused request or a decision without a rule, and rejects a copy", async () => {
    const { limiter } = limiterWith({ limit: 5, window: "1m", skip: ({ method }) => method === "HEAD" })
    const admitted = await limiter.decide(ALICE, { cost: 5 })
    const others: Decision[] = [
      await limiter.decide(ALICE),
      await limiter.decide(ALICE, { cost: 6 }),
      await limiter.decide({ method: "HEAD" }),
    ]
    for (const decision of others) for (const each of [decision, { ...decision }]) await limiter.refund(each)
    const copies = [
      { ...admitted },
      structuredClone({ ...admitted }),
      Object.create(admitted) as Decision,
      { allowed: true, cost: 1 } as Decision,
    ]
    for (const copy of copies) {
      await expect(limiter.refund(copy)).rejects.toThrow(
        "decision: is a copy, which has no record of the units to give back",
      )
    }
    expect(await remainingOf(limiter)).toEqual([0])
    await limiter.refund(admitted)
    expect(await remainingOf(limiter)).toEqual([5])
  })

  it("and settle reject a decision of another limiter, on the same store or not", async () => {
    const { store } = recordingStore()
    const one = limiterWith({ store, limit: 5, window: "1m", name: "one" }).limiter
    const others = [
      limiterWith({ store, limit: 5, window: "1m", name: "other" }).limiter,
      limiterWith({ limit: 5, window: "1m" }).limiter,
    ]
    const decision = await one.decide(ALICE, { cost: 3 })
    for (const other of others) {
      await other.decide(ALICE, { cost: 2 })
      for (const give of [other.refund(decision), other.settle(decision, 9)]) {
        await expect(give).rejects.toThrow(
          'decision: was made by another limiter, which has a rule "one"; accepted: a decision of this limiter; ' +
            "if several limiters decide a request, use limiter.decisionOn(request)",
        )
      }
    }
    expect(await Promise.all([one, ...others].map((each) => remainingOf(each)))).toEqual([[2], [3], [3]])
    await one.refund(decision)
    expect(await remainingOf(one)).toEqual([5])
    // The decision has no units left to refund, so any limiter accepts it.
    await others[0]?.refund(decision)
  })

  it("rejects a decision that another limiter made without its store", async () => {
    const gone = { ...recordingStore().store, take: () => Promise.reject(new Error("gone")) }
    const one = limiterWith({ store: gone, limit: 5, window: "1m", name: "one" }).limiter
    const other = limiterWith({ limit: 5, window: "1m" }).limiter
    const decision = await one.decide(ALICE)
    expect(decision).toMatchObject({ degraded: true, remaining: 4 })
    await expect(other.refund(decision)).rejects.toThrow("was made by another limiter")
    await one.refund(decision)
    expect((await one.decide(ALICE)).remaining).toBe(4)
  })

  it("rejects if the refund in the store fails", async () => {
    const { store } = recordingStore()
    const { limiter } = limiterWith({
      store: { ...store, refund: () => Promise.reject(new Error("gone")) },
      limit: 5,
      window: "1m",
    })
    await expect(limiter.refund(await limiter.decide(ALICE))).rejects.toThrow("gone")
  })
})

it("decisionOn returns undefined for a value without a decision, even undefined", () => {
  const { limiter } = limiterWith({ limit: 5, window: "1m" })
  for (const request of [undefined, null, {}]) expect(limiter.decisionOn(request as never)).toBeUndefined()
})

describe("reset", () => {
  const setUp = async () => {
    const { limiter } = limiterWith({
      rules: [
        { name: "client", limit: 5, window: "1m", field: "ip" },
        { name: "posts", limit: 5, window: "1m", field: "ip", match: { methods: ["POST"] } },
        { name: "whole", field: "service", limit: 50, window: "1m" },
      ],
    })
    const post = { ...ALICE, method: "POST" }
    for (const request of [post, { ...BOB, method: "POST" }]) await limiter.decide(request, { cost: 2 })
    return { limiter, post }
  }

  it("resets the counters of this request's client, but not those of the whole service", async () => {
    const { limiter, post } = await setUp()
    await limiter.reset(post)
    expect(await remainingOf(limiter, post)).toEqual([5, 5, 46])
    expect(await remainingOf(limiter, { ...BOB, method: "POST" })).toEqual([3, 3, 46])
  })

  it("also resets the counters of rules for other requests, because an operator knows only the address", async () => {
    const { limiter, post } = await setUp()
    await limiter.reset(ALICE)
    expect(await remainingOf(limiter, post)).toEqual([5, 5, 46])
  })

  it("does not call the limit function, because the facts are not a request of the app", async () => {
    const plans = { free: 1 }
    const limit = (request: RequestFacts & { plan?: "free" }) => plans[request.plan as "free"]
    const said: string[] = []
    const tell = ({ code }: { code: string }) => said.push(code)
    const limiter = createLimiter({
      limit,
      window: "1m",
      clock: manualClock(),
      logger: { warn: tell, error: tell },
    })
    const alice = { ...ALICE, plan: "free" as const }
    await limiter.decide(alice)
    await limiter.reset(ALICE)
    expect((await limiter.decide(alice)).allowed).toBe(true)
    expect(said).toEqual([])
  })

  it("resets the counters of a shadow rule", async () => {
    const { limiter } = limiterWith({ limit: 5, window: "1m", shadow: true })
    await limiter.decide(ALICE, { cost: 2 })
    await limiter.reset(ALICE)
    expect(await remainingOf(limiter)).toEqual([5])
  })

  it("resets only the counters of the named rules, including those of the whole service", async () => {
    const { limiter, post } = await setUp()
    await limiter.reset(post, { rules: ["posts"] })
    expect(await remainingOf(limiter, post)).toEqual([3, 5, 46])
    await limiter.reset(post, { rules: ["whole", "client"] })
    expect(await remainingOf(limiter, post)).toEqual([5, 5, 50])
    await limiter.decide(post)
    await limiter.reset(post, { rules: [] })
    expect(await remainingOf(limiter, post)).toEqual([4, 4, 49])
  })

  it("rejects with all unknown rule names, and resets nothing", async () => {
    const { limiter, post } = await setUp()
    const error: unknown = await limiter.reset(post, { rules: ["client", "cleint", "x"] }).catch((e) => e)
    expect(error).toBeInstanceOf(InvalidOptionError)
    const accepted = 'a list of these names: "client", "posts", "whole"'
    expect((error as InvalidOptionError).problems).toEqual([
      { path: "rules", message: '"cleint" is not the name of a rule', accepted },
      { path: "rules", message: '"x" is not the name of a rule', accepted },
    ])
    await expect(limiter.reset(post, { rules: "client" as never })).rejects.toThrow('"client" is not a list')
    await expect(limiterWith({ rules: [] }).limiter.reset(post, { rules: ["a"] })).rejects.toThrow(
      "accepted: no names, because there are no rules",
    )
    expect(await remainingOf(limiter, post)).toEqual([3, 3, 46])
  })

  it("resets no counter for a client without the field", async () => {
    const { store } = recordingStore()
    let asked = 0
    const { limiter } = limiterWith({
      store: { ...store, reset: () => void asked++ },
      limit: 5,
      window: "1m",
      field: "header:x-key",
      onMissing: "deny",
      allow: ["friend"],
    })
    await limiter.reset({})
    expect(asked).toBe(0)
    await limiter.reset({ headers: { "x-key": "foe" } })
    expect(asked).toBe(1)
  })
})

describe("close", () => {
  it("makes every later call reject, and is idempotent", async () => {
    const { limiter } = limiterWith({ limit: 5, window: "1m" })
    const decision = await limiter.decide(ALICE)
    await limiter.close()
    await limiter.close()
    for (const use of [
      () => limiter.decide(ALICE),
      () => limiter.enforce(ALICE),
      () => limiter.peek(ALICE),
      () => limiter.refund(decision),
      () => limiter.reset(ALICE),
      () => limiter.ready(),
    ]) {
      const error: unknown = await use().catch((thrown) => thrown)
      expect(error).toBeInstanceOf(ClosedError)
      expect((error as Error).message).toBe("The limiter has been closed.")
    }
  })

  it("closes the store that the limiter created, and no other", async () => {
    const { store } = recordingStore()
    let closed = 0
    const { limiter } = limiterWith({
      store: { ...store, close: () => void closed++ },
      limit: 5,
      window: "1m",
    })
    await limiter.close()
    expect(closed).toBe(0)
    const own = createLimiter({ limit: 5, window: "1m", logger: QUIET }) as unknown as {
      options: { store: Store }
      close(): Promise<void>
    }
    await own.close()
    expect(() => own.options.store.take([])).toThrow(ClosedError)
  })

  it("emits no more events", async () => {
    const store = memoryStore({ maxKeys: 1, clock: manualClock() })
    const { limiter } = limiterWith({ store, limit: 1, window: "1m" })
    const { limiter: busy } = limiterWith({ store, limit: 1, window: "1m", name: "other" })
    let heard = 0
    limiter.on("evicted", () => heard++)
    const block = async (from: number) => {
      for (let i = 0; i < 3; i++) {
        for (let j = 0; j < 2; j++) await busy.decide({ remoteAddress: `192.0.2.${from + i}` })
      }
    }
    await block(1)
    expect(heard).toBeGreaterThan(0)
    await limiter.close()
    heard = 0
    await block(101)
    expect(heard).toBe(0)
  })
})

describe("ready", () => {
  it("resolves immediately if the rules are in code", async () => {
    const { limiter } = limiterWith({ limit: 5, window: "1m" })
    await expect(limiter.ready()).resolves.toBeUndefined()
  })

  it("rejects with the reason of an aborted signal", async () => {
    const { limiter } = limiterWith({ limit: 5, window: "1m" })
    await expect(limiter.ready({ signal: AbortSignal.abort(new Error("enough")) })).rejects.toThrow("enough")
  })
})

describe("two limiters on one store", () => {
  const taken = (name: string, service: string) =>
    `Wrong options: name: another limiter already counts rule "${name}" of service "${service}" on this store; ` +
    "accepted: another name or service, or one limiter for both mounts: rateLimit({ limiter })"

  it("must not use the same rule name", async () => {
    const store = memoryStore()
    const rules = [{ name: "a", field: "service", limit: 5, window: "1m" }]
    const { limiter } = limiterWith({ store, rules })
    expect(() => limiterWith({ store, limit: 9, window: "1h", name: "a" })).toThrow(taken("a", "default"))
    expect(() => limiterWith({ store, rules: [{ ...rules[0], name: "b" } as never, ...rules] })).toThrow(
      taken("a", "default"),
    )
    // The rejected limiters have claimed no names.
    expect(() => limiterWith({ store, limit: 5, window: "1m", name: "b" })).not.toThrow()
    await limiter.close()
    expect(() => limiterWith({ store, rules })).not.toThrow()
  })

  it("may use the same rule name with different services or separate stores", () => {
    const store = memoryStore()
    limiterWith({ store, limit: 5, window: "1m" })
    expect(() => limiterWith({ store, limit: 5, window: "1m", service: "other" })).not.toThrow()
    expect(() => limiterWith({ store: memoryStore(), limit: 5, window: "1m" })).not.toThrow()
    expect(() => limiterWith({ limit: 5, window: "1m" })).not.toThrow()
    expect(() => limiterWith({ store, limit: 5, window: "1m", service: 7 })).not.toThrow()
    expect(() => limiterWith({ store, limit: 5, window: "1m", service: "7" })).toThrow(taken("ip-1m", "7"))
  })

  it("count separately, by name and by service", async () => {
    const store = memoryStore({ clock: manualClock() })
    const each = [{ name: "a" }, { name: "b" }, { name: "a", service: "s" }].map(
      (own) => limiterWith({ store, limit: 1, window: "1m", ...own }).limiter,
    )
    for (const limiter of each) expect((await limiter.decide(ALICE)).allowed).toBe(true)
    for (const limiter of each) expect((await limiter.decide(ALICE)).allowed).toBe(false)
  })

  it("do not mix the value of a field with another rule's name", async () => {
    const { limiter } = limiterWith({
      rules: [
        { name: "by-a", limit: 1, window: "1m", field: "header:a" },
        { name: "by-b", limit: 1, window: "1m", field: "header:b", match: { methods: ["POST"] } },
      ],
    })
    await limiter.decide({ method: "GET", headers: { a: "x" } })
    expect((await limiter.decide({ method: "POST", headers: { a: "y", b: "x" } })).allowed).toBe(true)
  })
})

describe("events", () => {
  it("report every decision with its request, until the listener is removed", async () => {
    const { limiter } = limiterWith({ limit: 1, window: "1m" })
    const heard: [boolean, RequestFacts][] = []
    const listen = ({ allowed }: Decision, request: RequestFacts) => heard.push([allowed, request])
    limiter.on("decision", listen)
    await limiter.decide(ALICE)
    await limiter.enforce(ALICE).catch(() => undefined)
    await limiter.peek(BOB)
    expect(heard).toEqual([
      [true, ALICE],
      [false, ALICE],
    ])
    expect(heard[0]?.[1]).toBe(ALICE)
    limiter.off("decision", listen)
    await limiter.decide(BOB)
    expect(heard).toHaveLength(2)
  })

  it("contain the call that made a decision, its duration and its counters", async () => {
    const { limiter } = limiterWith({ limit: 9, window: "1m" })
    const heard: DecisionCall[] = []
    limiter.on("decision", (_decision, _request, call) => heard.push(call))
    const startedMs = performance.now()
    await limiter.decide(ALICE)
    await limiter.enforce(ALICE)
    await limiter.takeUpTo(ALICE, 2)
    await limiter.acquire(ALICE)
    const tookMs = performance.now() - startedMs
    expect(heard.map(({ operation }) => operation)).toEqual(["decide", "decide", "takeUpTo", "acquire"])
    for (const { durationMs, counters } of heard) {
      expect(counters.map(({ policy, partition }) => [policy.name, partition])).toEqual([
        ["ip-1m", "192.0.2.1"],
      ])
      expect(durationMs).toBeGreaterThanOrEqual(0)
      expect(durationMs).toBeLessThanOrEqual(tookMs)
    }
  })

  it("report a later result of the store, but no call that began before the listener was added", async () => {
    const { store } = recordingStore()
    const later: Store = { ...store, take: async (checks) => store.take(checks) }
    const { limiter } = limiterWith({ store: later, limit: 9, window: "1m" })
    const heard: RequestFacts[] = []
    const earlier = [limiter.decide(ALICE), limiter.acquire(ALICE)]
    limiter.on("decision", (_decision, request) => heard.push(request))
    await Promise.all([...earlier, limiter.decide(BOB)])
    expect(heard).toEqual([BOB])
  })

  it("do not affect a request if a listener throws, immediately or later", async () => {
    const { limiter } = limiterWith({ limit: 5, window: "1m" })
    const warned: string[] = []
    limiter.on("warning", ({ code, message }) => warned.push(`${code} ${message}`))
    limiter.on("decision", () => {
      throw Object.create(null)
    })
    limiter.on("decision", async () => {
      throw new Error("later")
    })
    let last = 0
    limiter.on("decision", () => last++)
    expect((await limiter.decide(ALICE)).allowed).toBe(true)
    expect((await limiter.decide(ALICE)).allowed).toBe(true)
    expect(last).toBe(2)
    expect(warned).toEqual([
      'SLUICE_CALLBACK_FAILED A listener of "decision" failed: an unprintable object. Handle the error in the listener.',
    ])
  })

  it("cause a warning under their own name if their listener throws", async () => {
    const { limiter } = limiterWith({ limit: 5, window: "1m" })
    const warned: string[] = []
    limiter.on("warning", ({ message }) => warned.push(message))
    for (const name of ["decision", "closed"] as const) {
      limiter.on(name, () => {
        throw new Error("oops")
      })
    }
    await limiter.decide(ALICE)
    await limiter.close()
    expect(warned).toEqual([
      'A listener of "decision" failed: Error: oops. Handle the error in the listener.',
      'A listener of "closed" failed: Error: oops. Handle the error in the listener.',
    ])
  })

  it("have no effect if the listener of warnings throws", async () => {
    const { limiter } = limiterWith({ limit: 5, window: "1m", cost: () => -1 })
    let said = 0
    limiter.on("warning", () => {
      said++
      throw new Error("again")
    })
    expect((await limiter.decide(ALICE)).remaining).toBe(4)
    // There is one warning for the cost, and one for the listener.
    expect(said).toBe(2)
  })

  it("report that a full store evicted a counter that was still in use, and cause one warning", async () => {
    const { limiter, clock } = limiterWith({ limit: 1, window: "1m" })
    const small = limiterWith({ store: memoryStore({ maxKeys: 1, clock }), limit: 1, window: "1m" }).limiter
    const heard: unknown[] = []
    small.on("evicted", (event) => heard.push(event))
    limiter.on("evicted", () => heard.push("another's"))
    for (const request of [ALICE, ALICE, BOB, ALICE]) await small.decide(request)
    const event = { type: "evicted", counters: 1, emptyAfterMs: 120_000 }
    expect(heard).toEqual([
      { ...event, releaseAfterMs: 61_000 },
      { ...event, releaseAfterMs: 0 },
    ])
  })
})

describe("a request of Node's own http server", () => {
  it("is counted by a `remoteAddress` that the app has set on it", async () => {
    const { limiter } = limiterWith({ limit: 1, window: "1m" })
    const from = (remoteAddress: string) => ({ remoteAddress, socket: { remoteAddress: "198.51.100.1" } })
    const verdicts: boolean[] = []
    for (const host of [1, 1, 2]) verdicts.push((await limiter.decide(from(`192.0.2.${host}`))).allowed)
    expect(verdicts).toEqual([true, false, true])
  })
})

describe("a store that is shared with other processes", () => {
  function saidWith(service: string | undefined, isShared: boolean): string[] {
    const said: string[] = []
    const log = ({ code }: { readonly code: string }, message: string) =>
      void said.push(`${code}: ${message}`)
    const logger = { warn: log, error: log }
    const { store } = recordingStore()
    for (const name of ["one", "other"]) {
      createLimiter({ name, limit: 1, window: "1 ms", logger, store: { ...store, isShared }, service })
    }
    return said
  }

  it("causes one warning if the service name, which separates the counters of apps, is missing", () => {
    expect(saidWith(undefined, true)).toEqual([
      'SLUICE_DEFAULT_SERVICE: A limiter counts as service "default" in a shared store. ' +
        "Another app with a rule of the same name would use the same counters. " +
        'Set service: "…" to the name of this app. (@sluice/core/errors/sluice_default_service.md)',
    ])
    expect(saidWith("checkout", true)).toEqual([])
    expect(saidWith(undefined, false)).toEqual([])
  })
})
