import { describe, expect, it } from "vitest"
import { manualClock } from "../../ground/manual-clock.ts"
import { createWarner } from "../../ground/warnings.ts"
import type { RequestFacts } from "../../request/request.ts"
import type { ParsedRule, RateRule } from "../../rules/rule.ts"
import { CallbackResults } from "../callbacks/callback-results.ts"
import { createLimiter } from "../create-limiter.ts"
import { parseInlineRule } from "../options/parse-options.ts"
import { compileLimit, policyWithout } from "./limit.ts"

interface Asker extends RequestFacts {
  readonly plan?: unknown
}

/** Returns a limiter whose limit depends on each request's plan, with the warnings that it emits. */
function byPlan(
  limit: (request: Asker) => unknown,
  window: string | number = "1m",
  more: Partial<RateRule<Asker>> = {},
) {
  const clock = manualClock()
  const limiter = createLimiter<Asker>({
    limit: limit as (request: Asker) => number,
    window,
    name: "plan",
    field: "service",
    ...more,
    clock,
    logger: { warn() {}, error() {} },
  })
  const warned: string[] = []
  limiter.on("warning", ({ code, message }) => warned.push(`${code}: ${message}`))
  return { limiter, clock, warned }
}

const throwUndefined = () => {
  throw undefined
}
const planLimit = ({ plan }: Asker): unknown => plan

describe("a limit by a function", () => {
  it("is the function's result for each request, on one counter", async () => {
    const { limiter } = byPlan(({ plan }) => (plan === "pro" ? 5 : 2))
    const rows: [unknown, boolean, number, number][] = []
    for (const plan of ["free", "free", "free", "pro", "free", "pro", "pro", "pro"]) {
      const { allowed, limit, remaining } = await limiter.decide({ plan })
      rows.push([plan, allowed, limit, remaining])
    }
    expect(rows).toEqual([
      ["free", true, 2, 1],
      ["free", true, 2, 0],
      ["free", false, 2, 0],
      ["pro", true, 5, 2],
      ["free", false, 2, 0],
      ["pro", true, 5, 1],
      ["pro", true, 5, 0],
      ["pro", false, 5, 0],
    ])
  })

  it("does not limit requests if it is Infinity", async () => {
    const { limiter, warned } = byPlan(planLimit)
    expect(await limiter.decide({ plan: Number.POSITIVE_INFINITY })).toMatchObject({
      allowed: true,
      policy: "",
    })
    expect((await limiter.peek({ plan: 3 })).remaining).toBe(3)
    expect(warned).toEqual([])
  })

  it("is not requested until the promises of fields show that the rule counts the client", async () => {
    const asked: unknown[] = []
    const limiter = createLimiter<Asker>({
      limit: ({ plan }) => asked.push(plan),
      window: "1m",
      field: "user",
      fields: { user: async ({ plan }) => plan as string },
      allow: ["friend"],
    })
    expect((await limiter.decide({ plan: "friend" })).policy).toBe("")
    expect(asked).toEqual([])
    expect((await limiter.decide({ plan: "other" })).limit).toBe(1)
    expect(asked).toEqual(["other"])
  })

  it("refuses forever if it is 0, unless the cost is 0", async () => {
    const { limiter, warned } = byPlan(planLimit)
    expect(await limiter.decide({ plan: 0 })).toMatchObject({
      allowed: false,
      limit: 0,
      refusal: "cost",
      retryAfterMs: Number.POSITIVE_INFINITY,
    })
    expect(await limiter.decide({ plan: 0 }, { cost: 0 })).toMatchObject({ allowed: true, remaining: 0 })
    expect(warned).toEqual([])
  })

  it.each<[string, unknown]>([
    ["returned NaN", Number.NaN],
    ["returned -1", -1],
    ["returned 1.5", 1.5],
    ["returned -Infinity", Number.NEGATIVE_INFINITY],
    ["returned 9007199254740992", 2 ** 53],
    ["returned 5n", 5n],
    ["returned undefined", undefined],
    ['returned "5"', "5"],
    ["returned an unprintable object", Object.create(null)],
    ["returned undefined", Promise.resolve()],
    ["failed: Error: late", "rejected"],
    ["failed: TypeError: no plan", "thrown"],
  ])("is the latest limit if the function %s, which is reported once", async (what, plan) => {
    const { limiter, warned } = byPlan((request) => {
      if (request.plan === "thrown") throw new TypeError("no plan")
      return request.plan === "rejected" ? Promise.reject(new Error("late")) : request.plan
    })
    for (const sound of [7, 4, 9]) await limiter.peek({ plan: sound })
    expect((await limiter.peek({ plan })).limit).toBe(9)
    await limiter.peek({ plan: 5 })
    expect((await limiter.peek({ plan })).limit).toBe(5)
    expect(warned).toEqual([
      `SLUICE_INVALID_LIMIT: The limit function of rule "plan" ${what}. It must return 0 or a positive whole number, Infinity ` +
        "for no limit, or a promise of it. Until it does, the latest limit above 0 that it has returned applies. Before the first, " +
        "requests are refused with 503.",
    ])
  })

  it.each([
    ["throws", () => expect.unreachable()],
    ["throws undefined", throwUndefined],
    ["rejects", () => Promise.reject(new Error("late"))],
    ["returns undefined", () => undefined],
  ])(
    "is unknown if the function %s before it has ever returned a limit, and refuses requests as an outage does",
    async (_what, limit) => {
      const { limiter, warned } = byPlan(limit)
      for (let i = 0; i < 2; i++) {
        const decision = await limiter.decide({})
        expect(decision).toMatchObject({
          allowed: false,
          limit: 0,
          remaining: 0,
          cost: 0,
          retryAfterMs: 1_000,
        })
        expect(decision).toMatchObject({ refusal: "store-failure", degraded: false })
      }
      expect(await limiter.peek({})).toMatchObject({ refusal: "store-failure" })
      await expect(limiter.acquire({})).rejects.toMatchObject({ decision: { refusal: "store-failure" } })
      expect(await limiter.takeUpTo({}, 3)).toMatchObject({ refusal: "store-failure", cost: 0 })
      expect((await limiter.explain({}))[0]).toMatchObject({ applies: true, refusal: "store-failure" })
      expect(warned).toHaveLength(1)
    },
  )

  it("does not apply a 0 or an Infinity that was returned for another client if the function fails", async () => {
    const { limiter } = byPlan(planLimit)
    for (const plan of [0, Number.POSITIVE_INFINITY]) {
      await limiter.peek({ plan })
      expect(await limiter.peek({ plan: undefined })).toMatchObject({ refusal: "store-failure" })
    }
    await limiter.peek({ plan: 7 })
    for (const plan of [0, Number.POSITIVE_INFINITY]) {
      await limiter.peek({ plan })
      expect((await limiter.peek({ plan: undefined })).limit).toBe(7)
    }
  })

  it("is unknown under a shadow rule, which refuses nothing and is reported", async () => {
    const { limiter } = byPlan(() => undefined, "1m", { shadow: true })
    expect(await limiter.decide({})).toMatchObject({ allowed: true, shadowed: ["plan"] })
  })

  it("is capped at what can be counted exactly", async () => {
    const { limiter } = byPlan(planLimit, "30 days")
    expect((await limiter.peek({ plan: Number.MAX_SAFE_INTEGER })).limit).toBe(
      Math.floor(Number.MAX_SAFE_INTEGER / (30 * 86_400)),
    )
    const { limiter: odd } = byPlan(planLimit, 86_400_001)
    expect((await odd.peek({ plan: Number.MAX_SAFE_INTEGER })).limit).toBe(
      Math.floor(Number.MAX_SAFE_INTEGER / 86_400_001),
    )
  })

  it("is capped at the capacity of a log, including the units above a soft limit", async () => {
    const most = async (more: Partial<RateRule<Asker>>, window?: string): Promise<number> => {
      const { limiter } = byPlan(planLimit, window, more)
      return (await limiter.peek({ plan: Number.MAX_SAFE_INTEGER })).limit
    }
    const log = { algorithm: "sliding-log" } as const
    expect(await most(log)).toBe(1_000)
    // 952 + 47 is 999, and 953 + 47 is 1,000. 954 + 47 would be one too many.
    expect(await most({ ...log, throttle: { kind: "soft", percent: 5 } })).toBe(953)
    const limit = await most({ throttle: { kind: "soft", percent: 100 } }, "30 days")
    expect(limit).toBe(Math.floor(Number.MAX_SAFE_INTEGER / (30 * 86_400) / 2))
  })

  it("adds the percentage of a soft rule to the function's result", async () => {
    const { limiter } = byPlan(planLimit, "1m", { throttle: { kind: "soft", percent: 5 } })
    const overLimit: [number, boolean, boolean][] = []
    for (const [plan, cost] of [
      [500, 500],
      [500, 25],
      [500, 1],
      [540, 41],
      [19, 1],
    ] as const) {
      const decision = await limiter.decide({ plan }, { cost })
      overLimit.push([plan, decision.allowed, decision.overLimit])
    }
    expect(overLimit).toEqual([
      [500, true, false],
      [500, true, true],
      [500, false, false],
      [540, true, true],
      [19, false, false],
    ])
  })

  it("refills a bucket with the burst of the rule", async () => {
    const { limiter, clock } = byPlan(planLimit, "1s", { algorithm: "token-bucket", burst: 20 })
    expect(await limiter.decide({ plan: 5 }, { cost: 20 })).toMatchObject({ allowed: true, remaining: 0 })
    clock.advance(1_000)
    expect(await limiter.peek({ plan: 5 })).toMatchObject({ remaining: 5 })
  })

  it("of requests in progress is at most 1,000,000, or none", async () => {
    const limiter = createLimiter<Asker>({
      concurrent: ({ plan }) => plan as number,
      throttle: { kind: "soft", percent: 25 },
      field: "service",
      logger: { warn() {}, error() {} },
    })
    expect(await limiter.peek({ plan: 2_000_000 })).toMatchObject({ limit: 800_000, remaining: 800_000 })
    expect((await limiter.decide({ plan: 1 })).remaining).toBe(0)
    expect((await limiter.decide({ plan: 1 })).allowed).toBe(false)
    expect((await limiter.decide({ plan: Number.POSITIVE_INFINITY })).policy).toBe("")
    const warned: string[] = []
    limiter.on("warning", ({ message }) => warned.push(message))
    expect((await limiter.peek({ plan: "none" })).limit).toBe(1)
    expect(warned).toEqual([
      expect.stringContaining('The concurrent function of rule "service-in-flight" returned "none".'),
    ])
  })

  it("has a cached policy for few distinct limits, and a new policy after very many", () => {
    const { rule } = parseInlineRule(
      { limit: ({ plan }: Asker) => plan, window: "1m" },
      { amountOf: () => 1, unitNames: undefined },
    )
    const warner = createWarner(undefined, () => undefined)
    const context = { callbackTimeoutMs: 1, clock: manualClock(), warner }
    const unknown = { ...policyWithout(rule as ParsedRule, "counter"), limit: 0 }
    const limit = compileLimit(rule as ParsedRule, "counter", unknown, context)
    const policyFor = (request: Asker) =>
      typeof limit === "function" ? limit(new CallbackResults(request)) : limit
    const first = policyFor({ plan: 1 })
    for (let plan = 2; plan <= 1_000; plan++) policyFor({ plan })
    expect(policyFor({ plan: 1 })).toBe(first)
    policyFor({ plan: 1_001 })
    const anew = policyFor({ plan: 1 })
    expect(anew).not.toBe(first)
    expect(anew).toEqual(first)
  })
})
