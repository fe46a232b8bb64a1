import { liveRules } from "@sluice/rules"
import { afterEach, describe, expect, it, vi } from "vitest"
import { timeUnitMs } from "../../algorithms/exact-counts.ts"
import type { Decision } from "../../decision/decision.ts"
import { manualClock } from "../../ground/manual-clock.ts"
import { ceilingOf, type Policy } from "../../ground/policy.ts"
import { createLimiter } from "../../limiter/create-limiter.ts"
import type { LimiterOptions } from "../../limiter/options/options.ts"
import { spareCapacityMonitor } from "../../limiter/spare-capacity/monitor.ts"
import type { RequestFacts } from "../../request/request.ts"
import type { RateRule, Rule } from "../../rules/rule.ts"
import type { Throttle } from "../../rules/throttle.ts"
import { memoryStore } from "../../stores/memory/memory-store.ts"
import type { Store } from "../../stores/store.ts"
import { createGuard } from "./create-guard.ts"
import { changingRules } from "./testing/changing-rules.ts"

const QUIET = { warn() {}, error() {} }
const MINUTE = 60_000
const ALICE: RequestFacts = { remoteAddress: "192.0.2.1" }

/** Creates a limiter of 3 per minute. The test controls its spare capacity. */
function elastic(rule: Partial<RateRule<RequestFacts>> = {}, throttle: Partial<Throttle & object> = {}) {
  const clock = manualClock()
  const capacity = { isSpare: true }
  const limiter = createLimiter<RequestFacts>({
    limit: 3,
    window: MINUTE,
    name: "e",
    throttle: { kind: "elastic", signal: () => capacity.isSpare, ...throttle } as Throttle,
    clock,
    logger: QUIET,
    ...rule,
  })
  const warned: string[] = []
  limiter.on("warning", ({ code, message }) => warned.push(`${code}: ${message}`))
  const rows = async (count: number, cost = 1) => {
    const all: string[] = []
    for (let i = 0; i < count; i++) all.push(verdict(await limiter.decide(ALICE, { cost })))
    return all
  }
  return { limiter, clock, capacity, warned, rows }
}

function verdict({ allowed, overLimit, remaining, refusal }: Decision): string {
  return `${allowed ? "admit" : refusal}${overLimit ? " over" : ""} ${remaining}`
}

describe("elastic throttling with a signal", () => {
  it("admits and marks requests above the limit while there is spare capacity, and refuses them otherwise", async () => {
    const { rows, capacity } = elastic()
    expect(await rows(5)).toEqual(["admit 2", "admit 1", "admit 0", "admit over 0", "admit over 0"])
    capacity.isSpare = false
    expect(await rows(2)).toEqual(["quota 0", "quota 0"])
    capacity.isSpare = true
    expect(await rows(1)).toEqual(["admit over 0"])
  })

  it("admits no more units than the ceiling", async () => {
    const { rows, limiter } = elastic({}, { ceiling: 5 })
    expect(await rows(7)).toEqual([
      "admit 2",
      "admit 1",
      "admit 0",
      "admit over 0",
      "admit over 0",
      "quota 0",
      "quota 0",
    ])
    expect((await limiter.peek(ALICE)).checks[0]?.counts?.current).toBe(5)
  })

  it("counts requests above the limit, so a client must wait until enough of them have expired", async () => {
    const { rows, capacity, clock, limiter } = elastic({ algorithm: "sliding-log" }, { ceiling: 10 })
    await rows(2)
    clock.advance(1_000)
    await rows(4)
    capacity.isSpare = false
    // Six units are in use. The first two will not free enough units, and the other four were taken a second later.
    const refused = await limiter.decide(ALICE)
    expect([refused.retryAfterMs, refused.remaining, refused.resetAfterMs]).toEqual([60_001, 0, 60_001])
    clock.advance(60_000)
    expect((await limiter.decide(ALICE)).allowed).toBe(false)
    clock.advance(1)
    expect((await limiter.decide(ALICE)).allowed).toBe(true)
  })

  it.each<[string, Partial<RateRule<RequestFacts>>]>([
    ["sliding-window", {}],
    ["sliding-window with buckets", { buckets: 6 }],
    ["sliding-window-strict", { algorithm: "sliding-window-strict" }],
    ["fixed-window", { algorithm: "fixed-window" }],
    ["token-bucket", { algorithm: "token-bucket" }],
    ["periodic token-bucket", { algorithm: "token-bucket", refill: "periodic" }],
    ["leaky-bucket", { algorithm: "leaky-bucket" }],
  ])("admits hundreds of requests above the limit of a %s without a ceiling", async (_name, rule) => {
    const { rows, capacity, clock, limiter } = elastic(rule)
    const all = await rows(500)
    expect(all.slice(0, 3)).toEqual(["admit 2", "admit 1", "admit 0"])
    expect(new Set(all.slice(3))).toEqual(new Set(["admit over 0"]))
    capacity.isSpare = false
    const { allowed, retryAfterMs } = await limiter.decide(ALICE)
    expect([allowed, Number.isFinite(retryAfterMs)]).toEqual([false, true])
    clock.advance(retryAfterMs - 1)
    expect((await limiter.decide(ALICE)).allowed).toBe(false)
    clock.advance(1)
    expect((await limiter.decide(ALICE)).allowed).toBe(true)
  })

  it("does not extend another rule's wait, but refuses the retry if the capacity has gone", async () => {
    const clock = manualClock()
    const capacity = { isSpare: true }
    const throttle = { kind: "elastic", signal: () => capacity.isSpare } as const
    const fixed = { algorithm: "fixed-window" } as const
    const limiter = createLimiter<RequestFacts>({
      rules: [
        { ...fixed, name: "day", field: "service", limit: 1, window: "1 day", throttle },
        { ...fixed, name: "minute", field: "service", limit: 2, window: "1 minute" },
      ],
      clock,
      logger: QUIET,
    })
    await limiter.decide(ALICE)
    await limiter.decide(ALICE)
    expect(await limiter.decide(ALICE)).toMatchObject({ policy: "minute", retryAfterMs: MINUTE })
    clock.advance(MINUTE)
    expect(await limiter.decide(ALICE)).toMatchObject({ allowed: true, overLimit: true })
    capacity.isSpare = false
    expect(await limiter.decide(ALICE)).toMatchObject({ policy: "day", retryAfterMs: 1_439 * MINUTE })
  })

  it("gives peek the same result as decide", async () => {
    const { rows, limiter, capacity } = elastic()
    await rows(3)
    expect(verdict(await limiter.peek(ALICE))).toBe("admit over 0")
    capacity.isSpare = false
    expect(verdict(await limiter.peek(ALICE))).toBe("quota 0")
  })

  it("always refuses a cost above the ceiling, and a cost above the limit only without spare capacity", async () => {
    const { limiter, capacity, rows } = elastic({}, { ceiling: 5 })
    capacity.isSpare = false
    expect(await limiter.decide(ALICE, { cost: 4 })).toMatchObject({
      allowed: false,
      refusal: "quota",
      retryAfterMs: 1_000,
    })
    expect(await limiter.decide(ALICE, { cost: 6 })).toMatchObject({
      refusal: "cost",
      retryAfterMs: Infinity,
    })
    capacity.isSpare = true
    expect(await rows(1, 6)).toEqual(["cost 0"])
    expect(await rows(2, 4)).toEqual(["admit over 0", "quota 0"])
    // With spare capacity, the wait until this cost fits is known.
    expect((await limiter.decide(ALICE, { cost: 4 })).retryAfterMs).toBeGreaterThan(1_000)
  })

  it("admits units above the burst of a bucket, up to the ceiling", async () => {
    const { rows } = elastic({ algorithm: "token-bucket", burst: 4 }, { ceiling: 6 })
    expect(await rows(7)).toEqual([
      "admit 3",
      "admit 2",
      "admit 1",
      "admit 0",
      "admit over 0",
      "admit over 0",
      "quota 0",
    ])
  })

  it("refuses no request in shadow mode, but reports the requests that it would have refused", async () => {
    const { limiter, capacity } = elastic({ shadow: true }, { ceiling: 4 })
    const shadowed: string[] = []
    for (const isSpare of [true, true, true, true, true, false]) {
      capacity.isSpare = isSpare
      const decision = await limiter.decide(ALICE)
      expect([decision.allowed, decision.overLimit]).toEqual([true, false])
      shadowed.push(decision.shadowed.join())
    }
    expect(shadowed).toEqual(["", "", "", "", "e", "e"])
  })

  it("admits nothing if a limit function returns 0, and ignores a ceiling below the returned limit", async () => {
    let limit = 0
    const { rows } = elastic({ limit: () => limit }, { ceiling: 2 })
    expect(await rows(1)).toEqual(["cost 0"])
    limit = 1
    expect(await rows(3)).toEqual(["admit 0", "admit over 0", "quota 0"])
    limit = 3
    expect(await rows(2)).toEqual(["admit 0", "quota 0"])
  })

  it.each([
    ["failed: Error: broken", () => raise(new Error("broken"))],
    ["returned 1", () => 1],
    ["returned undefined", () => undefined],
    ["returned [object Promise]", () => Promise.resolve(true)],
    ["returned [object Promise]", () => Promise.reject(new Error("late"))],
  ])("refuses requests above the limit if the signal %s, and warns once per rule", async (what, signal) => {
    const throttle = { kind: "elastic", signal: signal as unknown as () => boolean } as const
    const limiter = createLimiter<RequestFacts>({
      rules: [
        { name: "a", field: "service", limit: 1, window: MINUTE, throttle },
        { name: "b", field: "service", limit: 5, window: MINUTE, throttle },
      ],
      clock: manualClock(),
      logger: QUIET,
    })
    const warned: string[] = []
    limiter.on("warning", ({ code, message }) => warned.push(`${code}: ${message}`))
    expect([await limiter.decide(ALICE), await limiter.decide(ALICE)].map(verdict)).toEqual([
      "admit 0",
      "quota 0",
    ])
    expect(warned).toEqual(
      ["a", "b"].map(
        (name) =>
          `SLUICE_CALLBACK_FAILED: signal of rule "${name}" ${what}. It must return true or false, not a promise; otherwise ` +
          "there is no capacity to spare.",
      ),
    )
  })
})

describe("the policies of an elastic rule", () => {
  /** Returns the policies that a store receives, alternating with and without spare capacity. */
  async function policiesOf(
    rule: Partial<RateRule<RequestFacts>>,
    throttle: Partial<Throttle & object> = {},
  ) {
    const inner = memoryStore({ clock: manualClock() })
    const policies: Policy[] = []
    const store: Store = {
      take(checks) {
        policies.push(...checks.map(({ policy }) => policy))
        return inner.take(checks)
      },
      read: inner.read.bind(inner),
      refund: inner.refund.bind(inner),
      reset: inner.reset.bind(inner),
      close: inner.close.bind(inner),
    }
    const { capacity, rows } = elastic({ ...rule, store } as Partial<RateRule<RequestFacts>>, throttle)
    for (const isSpare of [true, false, true, false]) {
      capacity.isSpare = isSpare
      await rows(1)
    }
    return policies
  }

  it("are two cached objects that share one counter", async () => {
    const [wide, hard, ...again] = await policiesOf({}, { ceiling: 50 })
    expect([wide?.extra, hard?.extra]).toEqual([47, undefined])
    expect(wide?.counter).toBe(hard?.counter)
    expect(again[0]).toBe(wide)
    expect(again[1]).toBe(hard)
  })

  it("are a single object if a limit function returns the ceiling or more", async () => {
    for (const ceiling of [3, 2])
      expect(new Set(await policiesOf({ limit: () => 3 }, { ceiling })).size).toBe(1)
  })

  it.each<[string, LimiterOptions<RequestFacts>, number]>([
    ["a window of a minute", { limit: 3, window: MINUTE }, 150_119_987_578],
    [
      "a bucket with a burst",
      { limit: 3, window: MINUTE, algorithm: "token-bucket", burst: 10 },
      150_119_987_578,
    ],
    ["a window of 30 days", { limit: 3, window: "30 days" }, 3_474_998],
    [
      "the largest limit that is counted in milliseconds",
      { limit: 3_474_998, window: "30 days", algorithm: "token-bucket" },
      3_474_998,
    ],
    ["a limit that is counted in whole seconds", { limit: 5_000_000, window: "30 days" }, 3_474_999_712],
    ["a limit function", { limit: () => 3, window: "30 days" }, 3_474_998],
  ])(
    "admit as many units as can be counted exactly if there is no ceiling: %s",
    async (_name, rule, expected) => {
      const [wide, hard] = (await policiesOf(rule as Partial<RateRule<RequestFacts>>)) as [Policy, Policy]
      expect(ceilingOf(wide)).toBe(expected)
      // The ceiling does not make time units coarser. The added unit stands for a partial unit.
      expect(timeUnitMs(ceilingOf(wide) + 1, wide.windowMs)).toBe(
        timeUnitMs(ceilingOf(hard) + 1, wide.windowMs),
      )
    },
  )
})

describe("the monitor of spare capacity", () => {
  afterEach(() => vi.restoreAllMocks())

  /** Counts the leases that are currently held. */
  function leases() {
    const held = { count: 0 }
    vi.spyOn(spareCapacityMonitor, "lease").mockImplementation(() => {
      held.count++
      return () => held.count--
    })
    return held
  }

  const ELASTIC = { limit: 1, window: MINUTE, throttle: { kind: "elastic" } } as const

  it("lets a rule without a signal admit above its limit while there is spare capacity", async () => {
    const isSpare = vi.spyOn(spareCapacityMonitor, "isSpare").mockReturnValue(true)
    const limiter = createLimiter({ ...ELASTIC, clock: manualClock(), logger: QUIET })
    const told: [boolean, boolean][] = []
    for (const spare of [true, true, false]) {
      isSpare.mockReturnValue(spare)
      const { allowed, overLimit } = await limiter.decide(ALICE)
      told.push([allowed, overLimit])
    }
    expect(told).toEqual([
      [true, false],
      [true, true],
      [false, false],
    ])
    await limiter.close()
  })

  it.each<[string, LimiterOptions<RequestFacts>, number]>([
    ["does not run for a limiter without an elastic rule", { limit: 1, window: MINUTE }, 0],
    [
      "does not run for an elastic rule with a signal",
      { ...ELASTIC, throttle: { kind: "elastic", signal: () => true } },
      0,
    ],
    ["runs while a limiter with an elastic rule is open", ELASTIC, 1],
    [
      "runs while a limiter is open if one of its two rules is elastic",
      {
        rules: [
          { ...ELASTIC, field: "service", name: "a" },
          { name: "b", field: "service", limit: 1, window: MINUTE },
        ],
      },
      1,
    ],
    [
      "runs once for all elastic rules of an open limiter",
      {
        rules: [
          { ...ELASTIC, field: "service", name: "a" },
          { ...ELASTIC, field: "service", name: "b" },
        ],
      },
      1,
    ],
  ])("%s", async (_name, options, expected) => {
    const held = leases()
    const limiter = createLimiter({ ...options, logger: QUIET })
    expect(held.count).toBe(expected)
    await limiter.close()
    await limiter.close()
    expect(held.count).toBe(0)
  })

  it("runs for the elastic rule of a route until the guard is closed", async () => {
    const held = leases()
    const guard = createGuard<object>({ limit: 1, window: MINUTE, name: "app", logger: QUIET })
    expect(held.count).toBe(0)
    guard.forRoute(ELASTIC, { label: "route" })
    expect(held.count).toBe(1)
    await guard.close()
    expect(held.count).toBe(0)
  })

  it("does not run for a limiter that could not be created", () => {
    const held = leases()
    const store = memoryStore()
    createLimiter({ limit: 1, window: MINUTE, name: "same", store, logger: QUIET })
    expect(() => createLimiter({ ...ELASTIC, name: "same", store, logger: QUIET })).toThrow("same")
    expect(held.count).toBe(0)
  })

  it("runs only while a rule of the source needs it", async () => {
    const held = leases()
    const elastic: Rule = { ...ELASTIC, name: "a", field: "service" }
    const rules: Rule[] = [{ name: "a", field: "service", limit: 1, window: MINUTE }]
    const { source, publish } = changingRules(rules)
    const limiter = createLimiter({ rules: liveRules(source), onRulesMissing: "allow", logger: QUIET })
    const counts: number[] = []
    for (const next of [rules, [elastic], rules, [elastic]]) {
      await publish(next)
      await limiter.refresh()
      counts.push(held.count)
    }
    expect(counts).toEqual([0, 1, 0, 1])
    await limiter.close()
    expect(held.count).toBe(0)
  })
})

function raise(error: Error): never {
  throw error
}
