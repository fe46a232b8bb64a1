import { describe, expect, it } from "vitest"
import { manualClock } from "../ground/manual-clock.ts"
import type { RateRule } from "../rules/rule.ts"
import { memoryStore } from "../stores/memory/memory-store.ts"
import type { Store } from "../stores/store.ts"
import { createLimiter } from "./create-limiter.ts"

const QUIET = { warn() {}, error() {} }
const SECOND = 1_000

const down = (): Store => ({
  take: () => Promise.reject(new Error("down")),
  read: () => Promise.reject(new Error("down")),
  refund: () => Promise.reject(new Error("down")),
  reset: () => Promise.reject(new Error("down")),
  close: () => undefined,
})

/** Returns one of several instances, whose store is unavailable. */
function instanceOf(instances: number, rule: Partial<RateRule>) {
  const clock = manualClock()
  const limiter = createLimiter<object>({
    rules: [{ name: "r", field: "service", limit: 8, window: SECOND, ...rule }],
    store: down(),
    instances,
    service: "test",
    clock,
    logger: QUIET,
  })
  const decide = (cost = 1) => limiter.decide({}, { cost })
  /** Returns the number of requests of cost 1 that are admitted at the same time. */
  const admitted = async () => {
    let count = 0
    while ((await decide()).allowed) count++
    return count
  }
  const granted = async (units = Number.MAX_SAFE_INTEGER) => (await limiter.takeUpTo({}, units)).cost
  return { clock, limiter, decide, admitted, granted, peek: (cost = 1) => limiter.peek({}, { cost }) }
}

const KINDS: [string, Partial<RateRule>][] = [
  ["sliding-window", {}],
  ["sliding-window with buckets", { buckets: 4 }],
  ["sliding-window-strict", { algorithm: "sliding-window-strict", buckets: 4 }],
  ["sliding-log", { algorithm: "sliding-log" }],
  ["fixed-window", { algorithm: "fixed-window" }],
  ["fixed-window, first hit", { algorithm: "fixed-window", align: "first-hit" }],
  ["token-bucket", { algorithm: "token-bucket" }],
  ["token-bucket, periodic", { algorithm: "token-bucket", refill: "periodic" }],
  ["leaky-bucket", { algorithm: "leaky-bucket" }],
]

describe("a month whose granted units only the store knows", () => {
  it("refuses what does not fit into the limit for a second, as a failure of the store", async () => {
    for (const limit of [0, 10]) {
      const limiter = createLimiter<object>({
        ...{ name: "monthly", field: "service", limit: () => limit, per: "month", store: down() },
        ...{ instances: 4, service: "test", logger: QUIET },
      })
      const refused = { allowed: false, refusal: "store-failure", retryAfterMs: SECOND, degraded: true }
      expect(await limiter.peek({}, { cost: limit + 1 })).toMatchObject(refused)
      expect(await limiter.decide({}, { cost: limit + 1 })).toMatchObject(refused)
      expect(await limiter.takeUpTo({}, 100)).toMatchObject(
        limit === 0 ? refused : { allowed: true, cost: 2 },
      )
      await limiter.close()
    }
  })
})

describe("a month, in four instances", () => {
  it("admits its limit once more in an outage of a day, and nothing in a later outage", async () => {
    const clock = manualClock(Date.UTC(2026, 1, 3))
    const shared = memoryStore({ clock })
    let isDown = false
    const call = <Result>(work: () => Result) => (isDown ? Promise.reject(new Error("down")) : work())
    const store = (): Store => ({
      take: (checks) => call(() => shared.take(checks)),
      read: (keys) => call(() => shared.read(keys)),
      refund: (refunds) => call(() => shared.refund(refunds)),
      reset: (keys) => call(() => shared.reset(keys)),
      close: () => undefined,
    })
    const instances = [1, 2, 3, 4].map(() =>
      createLimiter<object>({
        ...{
          name: "monthly",
          field: "service",
          limit: 1_000_000,
          per: "month",
          instances: 4,
          service: "test",
        },
        ...{ store: store(), clock, logger: QUIET },
      }),
    )
    const days = (number: number) => clock.advance(number * 86_400_000)
    const admitted = async () => {
      let units = 0
      for (const each of instances) units += (await each.takeUpTo({}, 1_000_000)).cost
      return units
    }
    const ledger: [day: string, isDown: boolean, admitted: number][] = []
    for (const [forDays, down] of [
      [0, false],
      [1, true],
      [1, false],
      [9, true],
      [14, true],
      [1, false],
    ] as const) {
      isDown = down
      days(forDays)
      const units = await admitted()
      ledger.push([new Date(clock.now()).toISOString().slice(5, 10), down, units])
    }
    expect(ledger).toEqual([
      ["02-03", false, 1_000_000],
      ["02-04", true, 1_000_000],
      ["02-05", false, 0],
      ["02-14", true, 0],
      ["02-28", true, 0],
      ["03-01", false, 1_000_000],
    ])
  })
})

it("the fallback counts at most 100,000 clients, so that an outage does not exhaust the memory", async () => {
  const limiter = createLimiter<{ readonly remoteAddress: string }>({
    ...{ name: "r", limit: 2, window: "1 hour", store: down(), service: "test" },
    ...{ clock: manualClock(), logger: QUIET },
  })
  const client = (i: number) => ({ remoteAddress: `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}` })
  for (let i = 0; i < 110_000; i++) await limiter.decide(client(i))
  let known = 0
  for (let i = 0; i < 110_000; i++) if ((await limiter.peek(client(i))).remaining === 1) known++
  expect(known).toBe(100_000)
  await limiter.close()
}, 60_000)

describe.each(KINDS)(
  "while the store is unavailable, one of four instances with a %s and a limit of 8",
  (_name, rule) => {
    it("admits its share", async () => {
      expect(await instanceOf(4, rule).admitted()).toBe(2)
      expect(await instanceOf(1, rule).admitted()).toBe(8)
      expect(await instanceOf(100, rule).admitted()).toBe(1)
    })

    it("admits one request of any cost within the whole limit, and returns the wait for the next request", async () => {
      for (const cost of [1, 2, 3, 7, 8]) {
        const { clock, decide } = instanceOf(4, rule)
        while ((await decide(cost)).allowed);
        const { retryAfterMs, refusal } = await decide(cost)
        expect([refusal, Number.isFinite(retryAfterMs)]).toEqual(["quota", true])
        clock.advance(retryAfterMs - 1)
        expect((await decide(cost)).allowed).toBe(false)
        clock.advance(1)
        expect((await decide(cost)).allowed).toBe(true)
      }
    })

    it("never admits a cost above the whole limit", async () => {
      expect(await instanceOf(4, rule).decide(9)).toMatchObject({ refusal: "cost", retryAfterMs: Infinity })
    })

    it("admits its share above the limit of a soft rule, and any single cost within the soft ceiling", async () => {
      const soft = { ...rule, throttle: { kind: "soft", percent: 100 } } as const
      const { decide } = instanceOf(4, soft)
      const over: boolean[] = []
      for (let i = 0; i < 4; i++) over.push((await decide()).overLimit)
      expect([over, (await decide()).allowed]).toEqual([[false, false, true, true], false])
      for (const cost of [9, 16]) {
        expect(await instanceOf(4, soft).decide(cost)).toMatchObject({ allowed: true, overLimit: true })
      }
      expect(await instanceOf(4, soft).decide(17)).toMatchObject({ refusal: "cost" })
    })

    it("admits its share above the limit of an elastic rule while there is spare capacity", async () => {
      let isSpare = true
      const elastic = { ...rule, throttle: { kind: "elastic", ceiling: 16, signal: () => isSpare } } as const
      expect(await instanceOf(4, elastic).admitted()).toBe(4)
      expect(await instanceOf(4, elastic).decide(16)).toMatchObject({ allowed: true, overLimit: true })
      isSpare = false
      expect(await instanceOf(4, elastic).admitted()).toBe(2)
      expect(await instanceOf(4, elastic).decide(16)).toMatchObject({
        refusal: "quota",
        retryAfterMs: SECOND,
      })
    })

    it("grants at most its share, so that all instances together grant the limit", async () => {
      let all = 0
      for (let i = 0; i < 4; i++) all += await instanceOf(4, rule).granted(8)
      expect(all).toBe(8)
      for (const [instances, part] of [
        [1, 8],
        [3, 2],
        [100, 1],
      ] as const) {
        const { granted } = instanceOf(instances, rule)
        expect([await granted(), await granted()]).toEqual([part, 0])
      }
      const { decide, granted } = instanceOf(2, rule)
      await decide()
      expect([await granted(2), await granted(), await granted()]).toEqual([2, 1, 0])
    })

    it("grants its share of the units above the limit, or one unit if the share is smaller", async () => {
      const soft = { ...rule, throttle: { kind: "soft", percent: 100 } } as const
      expect(await instanceOf(4, soft).granted()).toBe(4)
      const elastic = { ...rule, throttle: { kind: "elastic", ceiling: 16, signal: () => true } } as const
      expect(await instanceOf(4, elastic).granted()).toBe(4)
      expect(await instanceOf(4, { ...rule, cost: 3 }).granted()).toBe(1)
      expect(await instanceOf(4, { ...soft, cost: 9 }).granted()).toBe(1)
    })

    it("returns the wait for the next unit if no unit can be granted", async () => {
      const { limiter, clock, granted } = instanceOf(4, rule)
      await granted()
      const { allowed, refusal, retryAfterMs, degraded } = await limiter.takeUpTo({}, 8)
      expect([allowed, refusal, degraded]).toEqual([false, "quota", true])
      clock.advance(retryAfterMs - 1)
      expect(await granted()).toBe(0)
      clock.advance(1)
      expect(await granted()).toBeGreaterThan(0)
    })

    it("returns the same result from peek as from decide", async () => {
      const { decide, peek } = instanceOf(4, rule)
      expect([(await peek(7)).allowed, (await decide(7)).allowed, (await peek()).allowed]).toEqual([
        true,
        true,
        false,
      ])
    })
  },
)

describe("while the store is unavailable, one of four instances with a bucket", () => {
  it.each<[string, Partial<RateRule>]>([
    ["token-bucket", { algorithm: "token-bucket" }],
    ["token-bucket, periodic", { algorithm: "token-bucket", refill: "periodic" }],
    ["leaky-bucket", { algorithm: "leaky-bucket" }],
  ])("has its share of the burst and of the refill, whatever a request costs: %s", async (_name, rule) => {
    const { clock, admitted } = instanceOf(4, { ...rule, burst: 40 })
    expect(await admitted()).toBe(10)
    clock.advance(SECOND)
    expect(await admitted()).toBe(2)
    const dear = instanceOf(4, { ...rule, burst: 40 })
    expect((await dear.decide(36)).allowed).toBe(true)
    // The bucket refills 36 units at 2 per second, which is the rate of a quarter of the limit.
    expect(await dear.decide(36)).toMatchObject({ refusal: "quota", retryAfterMs: 18 * SECOND })
    expect(await instanceOf(4, { ...rule, burst: 40 }).decide(41)).toMatchObject({ refusal: "cost" })
  })
})

describe("a client that uses each unit as it comes back, in a window with several outages", () => {
  it.each([
    ["sliding-window", 2],
    ["sliding-window-strict", 1],
  ] as const)("gets twice the worst case of %s", async (algorithm, worst) => {
    const [limit, windowMs] = [10, 10_000]
    const clock = manualClock()
    const startMs = windowMs - 20
    clock.set(startMs)
    const shared = memoryStore({ clock })
    let isDown = false
    const store: Store = {
      take: (checks) => (isDown ? Promise.reject(new Error("down")) : shared.take(checks)),
      read: (checks) => shared.read(checks),
      refund: (refunds) => shared.refund(refunds),
      reset: (keys) => shared.reset(keys),
      close: () => shared.close(),
    }
    const more = { store, service: "test", clock, logger: QUIET }
    const limiter = createLimiter<object>({
      ...{ name: "r", field: "service", limit, window: windowMs, algorithm, ...more },
    })
    let admitted = 0
    // The store fails and recovers every ten milliseconds, from the end of one window to nearly the end of the next
    // one.
    for (; clock.now() < startMs + windowMs; clock.advance(10)) {
      isDown = !isDown
      while ((await limiter.decide({})).allowed) admitted++
    }
    expect(admitted).toBeLessThanOrEqual(2 * worst * limit)
    expect(admitted).toBeGreaterThanOrEqual(2 * worst * limit - 2)
    await limiter.close()
  })
})
