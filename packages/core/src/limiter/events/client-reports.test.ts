import { liveRules, type RuleSource } from "@sluice/rules"
import fc from "fast-check"
import { afterEach, describe, expect, it, vi } from "vitest"
import { ALGORITHM_NAMES } from "../../algorithms/kinds.ts"
import { StoreUnavailableError } from "../../ground/errors.ts"
import { manualClock } from "../../ground/manual-clock.ts"
import type { RequestFacts } from "../../request/request.ts"
import type { RateRule, Rule } from "../../rules/rule.ts"
import { memoryStore } from "../../stores/memory/memory-store.ts"
import { methodsOf } from "../../stores/testing/methods-of.ts"
import { createLimiter } from "../create-limiter.ts"
import type { Limiter } from "../interface/limiter.ts"
import type { LimiterOptions } from "../options/options.ts"
import type { RequestLimiter } from "../request-limiter.ts"

const MINUTE = 60_000
const ALICE: RequestFacts = { remoteAddress: "192.0.2.1" }
const BOB: RequestFacts = { remoteAddress: "192.0.2.2" }
const QUIET = { warn() {}, error() {} }
const RULE: RateRule = { name: "calls", field: "ip", limit: 10, window: "1 minute", notify: [80, 100] }

afterEach(() => {
  vi.restoreAllMocks()
})

/** Returns the reports of a limiter as strings: "calls 192.0.2.1 80 %: 8 used". */
function reportsOf<Request>(limiter: Limiter<Request>): string[] {
  const reports: string[] = []
  limiter.on("near-limit", ({ policy, partition, threshold, used, shadow }) => {
    reports.push(`${policy} ${partition} ${threshold} %: ${used} used${shadow ? ", shadow" : ""}`)
  })
  return reports
}

function open(
  rules: readonly Rule<RequestFacts>[] = [RULE],
  more: Partial<LimiterOptions<RequestFacts>> = {},
) {
  const clock = manualClock()
  const limiter = createLimiter<RequestFacts>({
    rules,
    clock,
    logger: QUIET,
    ...more,
  } as LimiterOptions<RequestFacts>)
  const reports = reportsOf(limiter)
  /** Sends this number of requests from a client, and returns the reports. */
  const decide = async (times: number, cost = 1, client = ALICE): Promise<string[]> => {
    for (let i = 0; i < times; i++) await limiter.decide(client, { cost })
    return reports.splice(0)
  }
  return { clock, limiter, reports, decide }
}

describe("a rule with thresholds", () => {
  it("reports each threshold when a client reaches it", async () => {
    const { limiter, decide } = open()
    const events: unknown[] = []
    limiter.on("near-limit", (...args) => events.push(args))
    expect(await decide(7)).toEqual([])
    expect(await decide(1)).toEqual(["calls 192.0.2.1 80 %: 8 used"])
    expect(await decide(1)).toEqual([])
    expect(await decide(1)).toEqual(["calls 192.0.2.1 100 %: 10 used"])
    expect(await decide(5)).toEqual([])
    const report = { policy: "calls", unit: "requests", partition: "192.0.2.1", limit: 10, shadow: false }
    expect(events).toEqual([
      [{ ...report, threshold: 80, used: 8, remaining: 2, resetAfterMs: 112_501 }, ALICE],
      [{ ...report, threshold: 100, used: 10, remaining: 0, resetAfterMs: 114_001 }, ALICE],
    ])
  })

  it("reports percentages of the limit with its granted units, also if the limit itself is 0", async () => {
    for (const limit of [10, 0]) {
      const rule: Rule = { name: "calls", field: "ip", limit: () => limit, per: "month", notify: [80, 100] }
      const { limiter, decide } = open([rule])
      const events: number[][] = []
      limiter.on("near-limit", (event) => {
        events.push([event.threshold, event.used, event.remaining, event.limit])
      })
      await limiter.grant(ALICE, 100 - limit)
      expect(await decide(79)).toEqual([])
      await decide(21)
      expect(events).toEqual([
        [80, 80, 20, 100],
        [100, 100, 0, 100],
      ])
    }
  })

  it("reports the requests in progress of a rule with concurrent, once for each hold", async () => {
    const rule: Rule = { name: "streams", field: "ip", concurrent: 2, hold: "10 seconds", notify: [100] }
    const { clock, decide } = open([rule])
    const full = ["streams 192.0.2.1 100 %: 2 used"]
    expect(await decide(3)).toEqual(full)
    clock.advance(9_999)
    expect(await decide(1)).toEqual([])
    clock.advance(10_001)
    expect(await decide(2)).toEqual(full)
  })

  it("reports every threshold that one request reaches, the lowest first", async () => {
    const { decide } = open([{ ...RULE, notify: [100, 20, 50, 90] }])
    expect(await decide(1, 9)).toEqual(
      [20, 50, 90].map((threshold) => `calls 192.0.2.1 ${threshold} %: 9 used`),
    )
  })

  it("reports a threshold that is not a whole number of units at the first unit above it", async () => {
    const { decide } = open([{ ...RULE, limit: 3, notify: [1, 34, 67] }])
    expect(await decide(1)).toEqual(["calls 192.0.2.1 1 %: 1 used"])
    expect(await decide(1)).toEqual(["calls 192.0.2.1 34 %: 2 used"])
    expect(await decide(1)).toEqual(["calls 192.0.2.1 67 %: 3 used"])
  })

  it("reports each client and each rule separately, without a warning about other rules", async () => {
    const { decide, limiter } = open([
      { ...RULE, notify: [80] },
      { ...RULE, name: "all", field: "service", limit: 9, notify: [100] },
      { ...RULE, name: "silent", notify: undefined },
    ])
    const warnings: string[] = []
    limiter.on("warning", ({ message }) => warnings.push(message))
    expect(await decide(8)).toEqual(["calls 192.0.2.1 80 %: 8 used"])
    expect(await decide(1, 1, BOB)).toEqual(["all  100 %: 9 used"])
    expect(warnings).toEqual([])
  })

  it("uses the limit of each client, and reports nothing under a limit of 0 or Infinity", async () => {
    const limits = new Map([
      [ALICE, 5],
      [BOB, 0],
    ])
    const { decide } = open([
      { ...RULE, limit: (request: RequestFacts) => limits.get(request) ?? Number.POSITIVE_INFINITY },
    ])
    expect(await decide(4)).toEqual(["calls 192.0.2.1 80 %: 4 used"])
    expect(await decide(1, 0, BOB)).toEqual([])
    expect(await decide(1, 1, BOB)).toEqual([])
    expect(await decide(9, 1, { remoteAddress: "192.0.2.3" })).toEqual([])
  })

  it("reports the used percentage of a bucket's capacity", async () => {
    const { decide } = open([{ ...RULE, algorithm: "token-bucket", burst: 20, notify: [50, 100] }])
    expect(await decide(9)).toEqual([])
    expect(await decide(1)).toEqual(["calls 192.0.2.1 50 %: 10 used"])
    expect(await decide(10)).toEqual(["calls 192.0.2.1 100 %: 20 used"])
  })

  it("reports units that other methods of the limiter take", async () => {
    const { limiter, reports } = open()
    await limiter.takeUpTo(ALICE, 8)
    expect(reports.splice(0)).toEqual(["calls 192.0.2.1 80 %: 8 used"])
    await limiter.acquire(ALICE, { cost: 2 })
    expect(reports.splice(0)).toEqual(["calls 192.0.2.1 100 %: 10 used"])
    await limiter.takeUpTo(BOB, 100)
    expect(reports).toHaveLength(2)
  })
})

describe("a threshold", () => {
  it("is reported again when a fixed window begins, and not earlier", async () => {
    const { clock, decide } = open([{ ...RULE, algorithm: "fixed-window", notify: [80] }])
    clock.advance(MINUTE - 1_000)
    expect(await decide(10)).toEqual(["calls 192.0.2.1 80 %: 8 used"])
    clock.advance(999)
    expect(await decide(10)).toEqual([])
    clock.advance(1)
    expect(await decide(10)).toEqual(["calls 192.0.2.1 80 %: 8 used"])
  })

  it("is reported again after a window by any other algorithm if the client stays above it", async () => {
    const { clock, decide } = open([{ ...RULE, notify: [80] }])
    clock.advance(MINUTE - 1_000)
    expect(await decide(10)).toEqual(["calls 192.0.2.1 80 %: 8 used"])
    // In the next window of the clock, the units of the previous one still count.
    clock.advance(MINUTE - 1)
    await decide(10)
    expect(await decide(1)).toEqual([])
    clock.advance(1)
    expect(await decide(1)).toEqual(["calls 192.0.2.1 80 %: 10 used"])
  })

  it.each(ALGORITHM_NAMES)(
    "is reported with the first decision of a window that reaches it, and with no other: %s",
    async (algorithm) => {
      const step = fc.record({
        waitMs: fc.integer({ min: 0, max: 40_000 }),
        cost: fc.integer({ min: 0, max: 4 }),
      })
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
          const { clock, limiter } = open([{ ...RULE, algorithm, throttle: "hard", notify: [30, 90] }])
          const reported: { threshold: number; atMs: number }[] = []
          limiter.on("near-limit", ({ threshold }) => reported.push({ threshold, atMs: clock.now() }))
          const isFixed = algorithm === "fixed-window"
          for (const { waitMs, cost } of steps) {
            clock.advance(waitMs)
            const before = [...reported]
            const { remaining } = await limiter.decide(ALICE, { cost })
            for (const threshold of [30, 90]) {
              const inWindow = before.filter(
                (report) =>
                  report.threshold === threshold &&
                  (isFixed
                    ? Math.floor(report.atMs / MINUTE) === Math.floor(clock.now() / MINUTE)
                    : clock.now() - report.atMs < MINUTE),
              )
              const isDue = (10 - remaining) * 10 >= threshold && inWindow.length === 0
              const now = reported.slice(before.length).filter((report) => report.threshold === threshold)
              expect(now).toHaveLength(isDue ? 1 : 0)
            }
          }
        }),
        { numRuns: 15 },
      )
    },
  )

  it("is remembered for the 10,000 clients that were seen last", async () => {
    const { clock, decide } = open([{ ...RULE, limit: 1, notify: [100] }])
    const client = (n: number): RequestFacts => ({ remoteAddress: `10.0.${n >> 8}.${n & 255}` })
    let reports = 0
    for (let n = 0; n < 10_050; n++) {
      clock.advance(1)
      reports += (await decide(1, 1, client(n))).length
      if (n % 100 === 0) reports += (await decide(1, 1, client(0))).length
    }
    expect(reports).toBe(10_050)
    let again = 0
    for (let n = 0; n < 10_050; n++) again += (await decide(1, 1, client(n))).length
    expect(again).toBeGreaterThanOrEqual(50)
    expect(again).toBeLessThan(2_000)
  })
})

describe("a threshold is not reported for", () => {
  it("a peek", async () => {
    const { limiter, reports } = open([{ ...RULE, notify: [1] }])
    await limiter.peek(ALICE, { cost: 10 })
    expect(reports).toEqual([])
  })

  it("a client that a list or a missing field refuses", async () => {
    const { decide } = open([
      { ...RULE, deny: ["192.0.2.1"], notify: [1] },
      { ...RULE, name: "keyed", field: "header:x-key", onMissing: "deny", notify: [1] },
    ])
    expect(await decide(1)).toEqual([])
    expect(await decide(1, 1, BOB)).toEqual([])
  })

  it("a cost that never fits", async () => {
    const { decide } = open([{ ...RULE, notify: [1] }])
    expect(await decide(1, 11)).toEqual([])
  })

  it("a client that is blocked while it has remaining units", async () => {
    const { limiter, decide } = open([{ ...RULE, notify: [50] }])
    await limiter.block(ALICE, { for: "1 hour" })
    expect(await decide(3)).toEqual([])
  })

  it("a client that a penalty blocks while it has remaining units", async () => {
    const { clock, decide } = open([
      { ...RULE, limit: 1, notify: [100], penalty: { refusals: 1, for: "1 hour" } },
    ])
    expect(await decide(2)).toEqual(["calls 192.0.2.1 100 %: 1 used"])
    clock.advance(10 * MINUTE)
    expect(await decide(1)).toEqual([])
  })

  it("a decision without the shared store", async () => {
    const inner = memoryStore()
    let isGone = true
    const { decide } = open([RULE], {
      store: {
        ...methodsOf(inner),
        take: (checks) => {
          if (isGone) throw new StoreUnavailableError("gone")
          return inner.take(checks)
        },
      },
    })
    expect(await decide(10)).toEqual([])
    isGone = false
    expect(await decide(8)).toEqual(["calls 192.0.2.1 80 %: 8 used"])
  })
})

describe("a threshold is reported", () => {
  it("for the rule of a route, even if other routes have thresholds", async () => {
    const { limiter, reports } = open([RULE])
    const [one, other] = ["one", "other"].map((name) =>
      (limiter as RequestLimiter<RequestFacts>).forRoute(
        {},
        {
          ...{ key: name, whose: "the same route", label: `route /${name}`, defaultName: name },
          rule: { limit: 1, window: "1 minute", notify: [100] },
        },
      ),
    )
    await other?.decide(ALICE)
    await one?.decide(ALICE)
    expect(reports).toEqual(["other 192.0.2.1 100 %: 1 used", "one 192.0.2.1 100 %: 1 used"])
  })

  it("for a shadow rule that would refuse", async () => {
    const { decide } = open([{ ...RULE, limit: 2, shadow: true }])
    expect(await decide(5)).toEqual([
      "calls 192.0.2.1 80 %: 2 used, shadow",
      "calls 192.0.2.1 100 %: 2 used, shadow",
    ])
  })

  it("once for a client that is admitted above the limit", async () => {
    const { decide } = open([{ ...RULE, throttle: { kind: "soft", percent: 100 } }])
    expect(await decide(1, 19)).toEqual(["calls 192.0.2.1 80 %: 10 used", "calls 192.0.2.1 100 %: 10 used"])
    const elastic = open([{ ...RULE, throttle: { kind: "elastic", signal: () => true } }])
    expect(await elastic.decide(30)).toEqual([
      "calls 192.0.2.1 80 %: 8 used",
      "calls 192.0.2.1 100 %: 10 used",
    ])
  })

  it("once for units that are refunded and used again", async () => {
    const { limiter, decide } = open([{ ...RULE, notify: [80] }])
    expect(await decide(7)).toEqual([])
    const decision = await limiter.decide(ALICE)
    await limiter.refund(decision)
    expect(await decide(1)).toEqual(["calls 192.0.2.1 80 %: 8 used"])
  })
})

describe("a limiter reads no clock for thresholds", () => {
  it("if no rule has thresholds, or if nothing listens", async () => {
    const now = vi.spyOn(performance, "now")
    const { decide } = open([{ ...RULE, notify: undefined }])
    const silent = createLimiter({ rules: [RULE], clock: manualClock() })
    await silent.decide(ALICE)
    await decide(1)
    expect(now).not.toHaveBeenCalled()
  })

  it("after the last listener has been removed", async () => {
    const limiter = createLimiter({ rules: [{ ...RULE, notify: [10] }], clock: manualClock() })
    const reports: number[] = []
    const [one, other] = [0, 1].map((n) => () => void reports.push(n)) as [() => void, () => void]
    limiter.on("near-limit", one)
    limiter.on("near-limit", other)
    limiter.off("near-limit", one)
    await limiter.decide(ALICE)
    expect(reports).toEqual([1])
    limiter.off("near-limit", other)
    const now = vi.spyOn(performance, "now")
    await limiter.decide(BOB)
    expect([reports, now.mock.calls]).toEqual([[1], []])
  })
})

describe("rules that change", () => {
  it("report the thresholds that are in force", async () => {
    const clock = manualClock()
    const source = { notify: undefined as number[] | undefined }
    const rules: RuleSource = {
      load: async () => ({ rules: [{ ...RULE, notify: source.notify }], problems: [] }),
    }
    const limiter = createLimiter({ rules: liveRules(rules), onRulesMissing: "deny", clock, logger: QUIET })
    const reports = reportsOf(limiter)
    await limiter.ready()
    await limiter.decide(ALICE)
    source.notify = [10, 30]
    await limiter.refresh()
    await limiter.decide(ALICE)
    expect(reports.splice(0)).toEqual(["calls 192.0.2.1 10 %: 2 used"])
    source.notify = [10, 20, 30]
    await limiter.refresh()
    await limiter.decide(ALICE)
    expect(reports.splice(0)).toEqual(["calls 192.0.2.1 20 %: 3 used", "calls 192.0.2.1 30 %: 3 used"])
    source.notify = undefined
    await limiter.refresh()
    const now = vi.spyOn(performance, "now")
    await limiter.decide(BOB, { cost: 10 })
    expect([reports, now.mock.calls]).toEqual([[], []])
    await limiter.close()
  })
})
