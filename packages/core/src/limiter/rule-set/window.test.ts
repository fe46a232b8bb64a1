import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { manualClock } from "../../ground/manual-clock.ts"
import type { RequestFacts } from "../../request/request.ts"
import type { RateRule } from "../../rules/rule.ts"
import { createLimiter } from "../create-limiter.ts"

interface Asker extends RequestFacts {
  readonly plan?: unknown
}

const MINUTE = 60_000

/** Returns a limiter of two requests per window, whose window depends on each request's plan. */
function byPlan(window: (request: Asker) => unknown, more: Partial<RateRule<Asker>> = {}) {
  const clock = manualClock()
  const limiter = createLimiter<Asker>({
    limit: 2,
    window: window as (request: Asker) => number,
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
const planWindow = ({ plan }: Asker): unknown => plan

describe("a window by a function", () => {
  it("has its own counter for each length, which a change of the client's plan never mixes", async () => {
    const { limiter } = byPlan(planWindow)
    const rows: [unknown, boolean, number, number][] = []
    for (const plan of ["1 minute", MINUTE, "1 hour", "1m", "1 hour", "1 hour"]) {
      const { allowed, remaining, checks } = await limiter.decide({ plan })
      rows.push([plan, allowed, remaining, checks[0]?.windowMs as number])
    }
    expect(rows).toEqual([
      ["1 minute", true, 1, MINUTE],
      [MINUTE, true, 0, MINUTE],
      ["1 hour", true, 1, 60 * MINUTE],
      ["1m", false, 0, MINUTE],
      ["1 hour", true, 0, 60 * MINUTE],
      ["1 hour", false, 0, 60 * MINUTE],
    ])
  })

  it("may be a promise, and is requested at the same time as the limit", async () => {
    const asked: string[] = []
    const { limiter } = byPlan(
      async () => {
        asked.push("window")
        return "1 hour"
      },
      {
        limit: async () => {
          asked.push("limit")
          await new Promise(setImmediate)
          expect(asked).toEqual(["limit", "window"])
          return 5
        },
      },
    )
    const { limit, checks } = await limiter.decide({})
    expect([limit, checks[0]?.windowMs]).toEqual([5, 60 * MINUTE])
  })

  it.each<[string, unknown]>([
    ["returned undefined", undefined],
    ['returned "soon"', "soon"],
    ["returned 0", 0],
    ["returned 31622400001", 366 * 24 * 60 * MINUTE + 1],
    ["failed: TypeError: no plan", "thrown"],
  ])("is the latest window if the function %s, which is reported once", async (what, plan) => {
    const { limiter, warned } = byPlan((request) => {
      if (request.plan === "thrown") throw new TypeError("no plan")
      return request.plan
    })
    expect((await limiter.peek({ plan })).refusal).toBe("store-failure")
    await limiter.peek({ plan: "1 hour" })
    expect((await limiter.peek({ plan })).checks[0]?.windowMs).toBe(60 * MINUTE)
    expect(warned).toEqual([
      `SLUICE_INVALID_LIMIT: The window function of rule "plan" ${what}. It must return a window of at most 366 days, such as "1 minute" ` +
        "or 60000, or a promise of it. Until it does, the latest window that it has returned applies. Before the first, requests are refused with 503.",
    ])
  })

  it("causes a warning if it is a number below 1,000, because other rate limiters use seconds", async () => {
    const { limiter, warned } = byPlan(async ({ plan }) => plan)
    for (const plan of ["60 ms", 60, 1_000, 60]) await limiter.decide({ plan })
    expect(warned).toEqual([
      'SLUICE_WINDOW_WITHOUT_UNIT: The window of rule "plan" is the number 60, which means 60 milliseconds. ' +
        'Write "60 seconds", or "60 ms" if you mean milliseconds.',
    ])
  })

  it("is rounded up to whole seconds if milliseconds could not be counted exactly", async () => {
    const { limiter, warned } = byPlan(planWindow)
    const longest = 366 * 24 * 60 * MINUTE
    const windows: unknown[] = []
    for (const plan of [8 * 60 * MINUTE + 1, 12 * 60 * MINUTE + 1, longest - 1])
      windows.push((await limiter.decide({ plan })).checks[0]?.windowMs)
    expect(windows).toEqual([8 * 60 * MINUTE + 1, 12 * 60 * MINUTE + 1_000, longest])
    expect(warned).toEqual([])
  })

  it("is not valid below one millisecond for each bucket, and the warning says so", async () => {
    const { limiter, warned } = byPlan(planWindow, { algorithm: "sliding-window-strict", buckets: 10 })
    expect((await limiter.decide({ plan: 10 })).allowed).toBe(true)
    await limiter.decide({ plan: "9 ms" })
    expect(warned[1]).toContain(
      'returned "9 ms". It must return a window of at least 10 ms and at most 366 days',
    )
  })

  it("causes a warning when the function has returned too many windows, because each has its own counter", async () => {
    const { limiter, warned } = byPlan(planWindow)
    for (let seconds = 1; seconds <= 100; seconds++) await limiter.decide({ plan: `${seconds} s` })
    expect(warned).toEqual([])
    for (const plan of ["101 s", "102 s"]) await limiter.decide({ plan })
    expect(warned).toEqual([
      'SLUICE_MANY_WINDOWS: The window function of rule "plan" has returned more than 100 windows. Each window has its own counter, ' +
        "so a client whose window changes is hardly limited. Return one of a few windows, such as one for each plan.",
    ])
  })

  it("is reset, however many limits have applied in it", async () => {
    let limit = 2
    const { limiter } = byPlan(planWindow, { limit: () => limit })
    for (const plan of ["1m", "1m"]) await limiter.decide({ plan })
    for (limit = 3; limit < 1_100; limit++) await limiter.peek({ plan: "1h" })
    limit = 2
    await limiter.reset({ plan: "1h" }, { rules: ["plan"] })
    expect((await limiter.peek({ plan: "1m" })).remaining).toBe(2)
  })

  it("is reset with every other window that the function has returned", async () => {
    const { limiter } = byPlan(planWindow)
    for (const plan of ["1m", "1m", "1h", "1h"]) await limiter.decide({ plan })
    await limiter.reset({ plan: "1m" }, { rules: ["plan"] })
    expect((await limiter.peek({ plan: "1m" })).remaining).toBe(2)
    expect((await limiter.peek({ plan: "1h" })).remaining).toBe(2)
  })

  it("applies to the limits of overrides, too, and to a block", async () => {
    const { limiter } = byPlan(planWindow, { field: "ip", overrides: { "192.0.2.7": 1 } })
    const client = { plan: "1 hour", remoteAddress: "192.0.2.7" }
    const { limit, checks } = await limiter.decide(client)
    expect([limit, checks[0]?.windowMs]).toEqual([1, 60 * MINUTE])
    await limiter.block(client, { for: "1 minute" })
    expect((await limiter.decide({ ...client, plan: "1 minute" })).refusal).toBe("blocked")
  })

  it("needs a name, and a time for refusals that cause a penalty", () => {
    expect(() => byPlan(planWindow, { name: undefined })).toThrow(
      "name: is missing, and window is a function, so there is no default",
    )
    const penalty = { refusals: 1, for: "1 minute" }
    expect(() => byPlan(planWindow, { field: "ip", penalty })).toThrow(
      "penalty.within: is missing, and window is a function",
    )
  })

  it.each([
    "fixed-window",
    "sliding-window",
    "sliding-window-strict",
    "sliding-log",
    "token-bucket",
  ] as const)(
    "counts as separate rules with these windows count, with the algorithm %s",
    async (algorithm) => {
      const windows = ["7 seconds", "1 minute", "61 seconds"]
      const step = fc.record({ window: fc.constantFrom(...windows), waitMs: fc.nat(20_000), cost: fc.nat(2) })
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
          const { limiter, clock } = byPlan(planWindow, { algorithm, limit: 3 })
          const single = new Map(
            windows.map((window) => [
              window,
              createLimiter({ field: "service", limit: 3, window, algorithm, clock }),
            ]),
          )
          for (const { window, waitMs, cost } of steps) {
            clock.advance(waitMs)
            const { allowed, remaining, retryAfterMs } = await limiter.decide({ plan: window }, { cost })
            const expected = await single.get(window)?.decide({}, { cost })
            expect({ allowed, remaining, retryAfterMs }).toEqual({
              allowed: expected?.allowed,
              remaining: expected?.remaining,
              retryAfterMs: expected?.retryAfterMs,
            })
          }
        }),
        { numRuns: 30 },
      )
    },
  )
})
