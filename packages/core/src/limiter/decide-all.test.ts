import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { InvalidOptionError } from "../ground/errors.ts"
import { manualClock } from "../ground/manual-clock.ts"
import type { RateRule, Rule } from "../rules/rule.ts"
import { memoryStore } from "../stores/memory/memory-store.ts"
import type { Store } from "../stores/store.ts"
import { createLimiter } from "./create-limiter.ts"
import { decideAll } from "./decide-all.ts"

const ANN = { remoteAddress: "192.0.2.7" }
const QUIET = { warn() {}, error() {} }

/** A store whose calls are counted, and which can fail. */
function countingStore() {
  const memory = memoryStore({ clock: manualClock() })
  const seen = { takes: 0, isDown: false, withinMs: undefined as number | undefined }
  const store: Store = {
    isShared: true,
    take(checks, withinMs) {
      seen.takes++
      seen.withinMs = withinMs
      if (seen.isDown) throw new Error("down")
      return memory.take(checks)
    },
    read: (checks) => memory.read(checks),
    refund: (refunds) => memory.refund(refunds),
    reset: (keys) => memory.reset(keys),
    close: () => memory.close(),
  }
  return { store, seen }
}

function limiterOf(store: Store, service: string, rule: Partial<RateRule>) {
  const rules: Rule[] = [{ name: "r", field: "ip", limit: 5, window: "1 minute", ...rule }]
  return createLimiter({ store, service, rules, logger: QUIET })
}

describe("decideAll", () => {
  it("takes the units of all limiters in one call", async () => {
    const { store, seen } = countingStore()
    const [search, maps] = [limiterOf(store, "search", {}), limiterOf(store, "maps", { limit: 9 })]
    const { allowed, decisions } = await decideAll([
      { limiter: search, request: ANN },
      { limiter: maps, request: ANN, cost: 4 },
    ])
    expect(allowed).toBe(true)
    expect(decisions).toMatchObject([
      { allowed: true, limit: 5, remaining: 4, cost: 1 },
      { allowed: true, limit: 9, remaining: 5, cost: 4 },
    ])
    expect(seen.takes).toBe(1)
    expect(await search.peek(ANN)).toMatchObject({ remaining: 4 })
    expect(await maps.peek(ANN)).toMatchObject({ remaining: 5 })
  })

  it("takes nothing if one limiter refuses, and returns the same wait for the others", async () => {
    const { store } = countingStore()
    const [search, maps] = [limiterOf(store, "search", {}), limiterOf(store, "maps", { limit: 1 })]
    const group = [
      { limiter: search, request: ANN },
      { limiter: maps, request: ANN },
    ] as const
    expect((await decideAll(group)).allowed).toBe(true)
    const { allowed, decisions } = await decideAll(group)
    expect(allowed).toBe(false)
    const [held, refused] = decisions
    expect(refused).toMatchObject({ allowed: false, refusal: "quota", cost: 0, remaining: 0 })
    expect(refused?.retryAfterMs).toBeGreaterThan(0)
    expect(held).toMatchObject({ allowed: false, refusal: "group", cost: 0, remaining: 4, delayMs: 0 })
    expect(held?.retryAfterMs).toBe(refused?.retryAfterMs)
    expect(held?.checks).toMatchObject([{ allowed: true, remaining: 4 }])
    expect(await search.peek(ANN)).toMatchObject({ remaining: 4 })
  })

  it("does not call the store if the cost of one limiter can never fit", async () => {
    const { store, seen } = countingStore()
    const [search, maps] = [limiterOf(store, "search", {}), limiterOf(store, "maps", {})]
    const { decisions } = await decideAll([
      { limiter: search, request: ANN, cost: 6 },
      { limiter: maps, request: ANN },
    ])
    expect(decisions).toMatchObject([
      { allowed: false, refusal: "cost", retryAfterMs: Number.POSITIVE_INFINITY },
      { allowed: false, refusal: "group", retryAfterMs: Number.POSITIVE_INFINITY },
    ])
    expect(seen.takes).toBe(0)
  })

  it("refunds each decision by its own limiter", async () => {
    const { store } = countingStore()
    const [search, maps] = [limiterOf(store, "search", {}), limiterOf(store, "maps", {})]
    const { decisions } = await decideAll([
      { limiter: search, request: ANN },
      { limiter: maps, request: ANN },
    ])
    await search.refund(decisions[0] as (typeof decisions)[0])
    expect(await search.peek(ANN)).toMatchObject({ remaining: 5 })
    expect(await maps.peek(ANN)).toMatchObject({ remaining: 4 })
    await expect(search.refund(decisions[1] as (typeof decisions)[0])).rejects.toThrow()
    await maps.settle(decisions[1] as (typeof decisions)[0], 3)
    expect(await maps.peek(ANN)).toMatchObject({ remaining: 2 })
  })

  it("admits a request that no limiter counts", async () => {
    const { store, seen } = countingStore()
    const skipping = createLimiter({
      store,
      service: "a",
      limit: 1,
      window: 1_000,
      skip: () => true,
      logger: QUIET,
    })
    const other = limiterOf(store, "b", { match: { methods: ["POST"] } })
    const { allowed, decisions } = await decideAll([
      { limiter: skipping, request: ANN },
      { limiter: other, request: { ...ANN, method: "GET" } },
    ])
    expect(allowed).toBe(true)
    expect(decisions).toMatchObject([
      { allowed: true, checks: [] },
      { allowed: true, checks: [] },
    ])
    expect(await decideAll([])).toEqual({ allowed: true, decisions: [] })
    expect(seen.takes).toBe(0)
  })

  it("refuses a request that its limiter does not count if another limiter refuses", async () => {
    const { store } = countingStore()
    const skipping = createLimiter({
      store,
      service: "a",
      limit: 1,
      window: 1_000,
      skip: () => true,
      logger: QUIET,
    })
    const { allowed, decisions } = await decideAll([
      { limiter: skipping, request: ANN },
      { limiter: limiterOf(store, "b", { deny: [ANN.remoteAddress] }), request: ANN },
    ])
    expect(allowed).toBe(false)
    expect(decisions).toMatchObject([
      { allowed: false, refusal: "group" },
      { allowed: false, refusal: "denied" },
    ])
  })

  it("emits an event for each limiter", async () => {
    const { store } = countingStore()
    const [search, maps] = [limiterOf(store, "search", { limit: 1 }), limiterOf(store, "maps", {})]
    const events: string[] = []
    for (const limiter of [search, maps]) {
      limiter.on("decision", (decision, _request, { operation }) =>
        events.push(`${operation} ${limiter.status.service} ${decision.allowed} ${decision.refusal}`),
      )
    }
    const group = [
      { limiter: search, request: ANN },
      { limiter: maps, request: ANN },
    ] as const
    await decideAll(group)
    await decideAll(group)
    expect(events).toEqual([
      "decide search true undefined",
      "decide maps true undefined",
      "decide search false quota",
      "decide maps false group",
    ])
  })

  it("counts a refusal for penalties only in the limiter that refused", async () => {
    const { store } = countingStore()
    const penalty = { refusals: 2, for: "1 hour" }
    const search = limiterOf(store, "search", { limit: 1, penalty })
    const maps = limiterOf(store, "maps", { penalty })
    const group = [
      { limiter: search, request: ANN },
      { limiter: maps, request: ANN },
    ] as const
    for (let i = 0; i < 3; i++) await decideAll(group)
    const { decisions } = await decideAll(group)
    expect(decisions).toMatchObject([{ refusal: "penalty" }, { refusal: "group" }])
    expect(await maps.decide(ANN)).toMatchObject({ allowed: true, remaining: 3 })
  })

  it("is also all or nothing without the store", async () => {
    const { store, seen } = countingStore()
    const [search, maps] = [limiterOf(store, "search", { limit: 2 }), limiterOf(store, "maps", { limit: 1 })]
    const group = [
      { limiter: search, request: ANN },
      { limiter: maps, request: ANN },
    ] as const
    seen.isDown = true
    expect((await decideAll(group)).decisions).toMatchObject([
      { allowed: true, degraded: true },
      { allowed: true, degraded: true },
    ])
    for (let i = 0; i < 3; i++) {
      expect((await decideAll(group)).decisions).toMatchObject([
        { allowed: false, degraded: true, refusal: "group" },
        { allowed: false, degraded: true, refusal: "quota" },
      ])
    }
    // The refused groups have refunded the units that they had taken from search.
    expect(await search.decide(ANN)).toMatchObject({ allowed: true, degraded: true, remaining: 0 })
  })

  it("returns the longest wait of several refusals", async () => {
    const { store } = countingStore()
    const [minute, hour, free] = [
      limiterOf(store, "minute", { limit: 1 }),
      limiterOf(store, "hour", { limit: 1, window: "1 hour" }),
      limiterOf(store, "free", {}),
    ]
    const group = [minute, hour, free].map((limiter) => ({ limiter, request: ANN }))
    await decideAll(group)
    const [first, second, held] = (await decideAll(group)).decisions
    expect(second?.retryAfterMs).toBeGreaterThan(first?.retryAfterMs as number)
    expect(held).toMatchObject({ refusal: "group", retryAfterMs: second?.retryAfterMs })
  })

  it("waits for the store no longer than any of the limiters would", async () => {
    const { store, seen } = countingStore()
    const group = [70, 30].map((storeTimeoutMs) => ({
      limiter: createLimiter({
        store,
        service: `s${storeTimeoutMs}`,
        limit: 1,
        window: 1_000,
        storeTimeoutMs,
      }),
      request: ANN,
    }))
    await decideAll(group)
    expect(seen.withinMs).toBe(30)
  })

  it("ends the outage in every limiter when the store has recovered", async () => {
    const { store, seen } = countingStore()
    const clock = manualClock()
    const recovered: string[] = []
    const group = ["a", "b"].map((service) => {
      const limiter = createLimiter({ store, service, clock, limit: 9, window: "1 hour", logger: QUIET })
      limiter.on("recovered", () => recovered.push(service))
      return { limiter, request: ANN }
    })
    seen.isDown = true
    await decideAll(group)
    seen.isDown = false
    clock.advance(60_000)
    await decideAll(group)
    expect(recovered).toEqual(["a", "b"])
  })

  it("rejects a group that cannot be decided by a single call of one store", async () => {
    const [a, b] = [limiterOf(memoryStore(), "a", {}), limiterOf(memoryStore(), "b", {})]
    const problemsOf = async (group: unknown) => {
      const error: unknown = await decideAll(group as never).catch((thrown: unknown) => thrown)
      return (error as InvalidOptionError).problems.map(
        ({ path, message, accepted }) => `${path} ${message}; accepted: ${accepted}`,
      )
    }
    expect(
      await problemsOf([
        { limiter: a, request: ANN },
        { limiter: b, request: ANN },
      ]),
    ).toEqual([
      "requests[1].limiter has another store than requests[0].limiter; " +
        "accepted: limiters that were created with the same store",
    ])
    expect(
      await problemsOf([
        { limiter: a, request: ANN },
        { limiter: a, request: {} },
      ]),
    ).toEqual([
      "requests[1].limiter is the limiter of requests[0] too, so both would count in the same counters; " +
        "accepted: one request for each limiter, with their sum as its cost",
    ])
    const made = "accepted: a limiter that createLimiter() returned"
    expect(await problemsOf([null, { limiter: {}, request: ANN }, { limiter: a, request: ANN }])).toEqual([
      `requests[0].limiter undefined is not a limiter; ${made}`,
      `requests[1].limiter {} is not a limiter; ${made}`,
    ])
    expect(await problemsOf("all")).toEqual([
      'requests "all" is not a list of requests; accepted: a list of objects with limiter and request',
    ])
    expect(await problemsOf([{ limiter: a, request: ANN, cost: -1 }])).toEqual([
      "cost -1 is not a cost; accepted: 0 or a positive whole number",
    ])
    expect(await a.peek(ANN)).toMatchObject({ remaining: 5 })
  })

  it("agrees with a model of counters in any sequence", async () => {
    const step = fc.array(fc.record({ which: fc.nat(2), cost: fc.nat(4) }), { minLength: 1, maxLength: 3 })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const { store } = countingStore()
        const limits = [4, 7, 12]
        const limiters = limits.map((limit, i) =>
          limiterOf(store, `s${i}`, { limit, algorithm: "fixed-window" }),
        )
        const used = [0, 0, 0]
        for (const wanted of steps) {
          const group = wanted.filter(
            ({ which }, i) => wanted.findIndex((each) => each.which === which) === i,
          )
          const fits = group.every(
            ({ which, cost }) => (used[which] as number) + cost <= (limits[which] as number),
          )
          const { allowed, decisions } = await decideAll(
            group.map(({ which, cost }) => ({
              limiter: limiters[which] as (typeof limiters)[0],
              request: ANN,
              cost,
            })),
          )
          expect(allowed).toBe(fits)
          expect(decisions.every((decision) => decision.allowed === allowed)).toBe(true)
          if (fits) for (const { which, cost } of group) used[which] = (used[which] as number) + cost
        }
        for (const [i, limiter] of limiters.entries()) {
          expect((await limiter.peek(ANN)).remaining).toBe((limits[i] as number) - (used[i] as number))
        }
      }),
      { numRuns: 60 },
    )
  })
})
