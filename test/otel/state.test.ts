import { setImmediate as nextTurn } from "node:timers/promises"
import {
  createLimiter,
  memoryStore,
  type RequestFacts,
  RuleSourceError,
  type Store,
  StoreUnavailableError,
} from "@sluice/core"
import { createGuard } from "@sluice/core/adapters"
import { manualClock } from "@sluice/core/testing"
import { instrument } from "@sluice/otel"
import { type LoadedRules, liveRules, type RuleSource } from "@sluice/rules"
import { leasedStore, writeBackStore } from "@sluice/scale"
import { describe, expect, it, onTestFinished } from "vitest"
import { until } from "../servers/until.ts"
import { startMetering } from "./metering.ts"

const ALICE: RequestFacts = { remoteAddress: "192.0.2.1" }
const QUIET = { warn() {}, error() {} }
const RULE = { name: "all", field: "ip", limit: 1, window: "1 minute" } as const

/** Creates a limiter on a source that returns, or throws, the value that the test has set. */
function followSource(first: LoadedRules | Error) {
  const clock = manualClock()
  const metering = startMetering()
  const source = { stored: first, pollMs: 30_000 }
  const rules: RuleSource = {
    pollMs: source.pollMs,
    async load() {
      if (source.stored instanceof Error) throw source.stored
      return source.stored
    },
  }
  const limiter = createLimiter({
    rules: liveRules(rules),
    onRulesMissing: "allow",
    clock,
    service: "shop",
    logger: QUIET,
  })
  onTestFinished(() => limiter.close())
  instrument(limiter, { meterProvider: metering.meterProvider })
  const value = async (name: string) => Object.values(await metering.values(name))[0]
  return { clock, source, limiter, metering, value }
}

describe("the rules of a source", () => {
  it("are described by their age, version and problems", async () => {
    const { clock, source, limiter, value } = followSource({ rules: [RULE], problems: [], version: 7 })
    await limiter.ready()
    clock.advance(12_500)
    expect(await value("sluice.rule_set.age")).toBe(12.5)
    expect(await value("sluice.rule_set.version")).toBe(7)
    expect(await value("sluice.rule_set.problems")).toBe(0)
    expect(await value("sluice.rule_set.stale")).toBe(0)
    source.stored = { rules: [RULE, { ...RULE, name: "bad", limit: -1 }], problems: [], version: 8 }
    await expect(limiter.refresh()).rejects.toThrow("-1 is not a limit")
    expect(await value("sluice.rule_set.age")).toBe(12.5)
    expect(await value("sluice.rule_set.version")).toBe(7)
    expect(await value("sluice.rule_set.rejected")).toBe(1)
    source.stored = { rules: [RULE], problems: [], version: 9 }
    await limiter.refresh()
    expect(await value("sluice.rule_set.age")).toBe(0)
    expect(await value("sluice.rule_set.version")).toBe(9)
    expect(await value("sluice.rule_set.rejected")).toBe(0)
  })

  it("include the problems of rules that were left out of the first version", async () => {
    const bad = { ...RULE, name: "bad", limit: -1 }
    const { limiter, value } = followSource({ rules: [RULE, bad], problems: [], version: 7 })
    await limiter.ready()
    expect(await value("sluice.rule_set.problems")).toBe(1)
    expect(await value("sluice.rule_set.rejected")).toBe(0)
  })

  it("have no age before they are loaded, and count errors by their codes", async () => {
    const { source, limiter, metering, value } = followSource(new RuleSourceError("no table"))
    await expect(limiter.ready()).rejects.toThrow("no table")
    expect(await value("sluice.rule_set.age")).toBeUndefined()
    expect(await value("sluice.rule_set.version")).toBeUndefined()
    expect(await value("sluice.rule_set.stale")).toBe(0)
    source.stored = { rules: [{ ...RULE, limit: -1 }], problems: [] }
    await expect(limiter.refresh()).rejects.toThrow("limit")
    expect(await metering.values("sluice.rule_set.errors", "error.type")).toEqual({
      SLUICE_RULE_SOURCE: 1,
      SLUICE_INVALID_RULE: 1,
    })
  })

  it("are stale when they could not be loaded for a long time", async () => {
    const { clock, source, limiter, value } = followSource({ rules: [RULE], problems: [] })
    await limiter.ready()
    source.stored = new RuleSourceError("gone")
    await expect(limiter.refresh()).rejects.toThrow("gone")
    clock.advance(200_000)
    await until("the rules are stale", async () => (await value("sluice.rule_set.stale")) === 1)
    expect(await value("sluice.rule_set.age")).toBe(200)
  })
})

describe("rules in code", () => {
  it("have no metrics of a rule set, such as an age or a version", async () => {
    const metering = startMetering()
    const limiter = createLimiter({ rules: [RULE] })
    instrument(limiter, { meterProvider: metering.meterProvider })
    await limiter.decide(ALICE)
    expect([...(await metering.collect()).keys()].sort()).toEqual([
      "sluice.decision.duration",
      "sluice.policy.decisions",
      "sluice.request.waiting",
    ])
  })
})

describe("a waiting request", () => {
  it("is counted until the decision is made", async () => {
    const clock = manualClock()
    const metering = startMetering()
    const limiter = createLimiter({ limit: 1, window: "1 second", algorithm: "fixed-window", clock })
    instrument(limiter, { meterProvider: metering.meterProvider })
    const waiting = () => metering.values("sluice.request.waiting", "sluice.limiter.name")
    await limiter.acquire(ALICE)
    const others = [limiter.acquire(ALICE), limiter.acquire(ALICE)]
    expect(await waiting()).toEqual({ default: 2 })
    clock.advance(1_000)
    await others[0]
    expect(await waiting()).toEqual({ default: 1 })
    clock.advance(1_000)
    await others[1]
    expect(await waiting()).toEqual({ default: 0 })
  })
})

describe("a refund that no code awaits", () => {
  it("is counted when it is lost because the store fails", async () => {
    const metering = startMetering()
    const inner = memoryStore()
    const store: Store = {
      take: (checks) => inner.take(checks),
      read: (checks) => inner.read(checks),
      refund: () => Promise.reject(new StoreUnavailableError("gone", { kind: "unavailable" })),
      reset: (keys) => inner.reset(keys),
      close: () => inner.close(),
    }
    const limiter = createLimiter({
      limit: 1,
      window: "1 minute",
      store,
      refundWhen: () => true,
      logger: QUIET,
    })
    const stop = instrument(limiter, { meterProvider: metering.meterProvider })
    const guard = createGuard<RequestFacts>({ limiter })
    const request = { ...ALICE }
    await guard.check(request, request)
    guard.reportStatus(request, 200)
    await nextTurn()
    expect(await metering.values("sluice.store.lost_refunds", "error.type")).toEqual({ unavailable: 1 })
    stop()
  })
})

describe("a full memory store", () => {
  it("reports the number of refused clients that it evicts", async () => {
    const clock = manualClock()
    const metering = startMetering()
    const store = memoryStore({ maxKeys: 1, clock })
    const limiter = createLimiter({ limit: 1, window: "1 minute", clock, store, logger: QUIET })
    instrument(limiter, { meterProvider: metering.meterProvider })
    let evicted = 0
    limiter.on("evicted", () => void evicted++)
    for (let client = 0; client < 50; client++) {
      for (let times = 0; times < 2; times++) await limiter.decide({ remoteAddress: `192.0.2.${client}` })
    }
    expect(evicted).toBeGreaterThan(0)
    expect(await metering.values("sluice.store.evictions", "sluice.limiter.name")).toEqual({
      default: evicted,
    })
  })
})

describe("the leases of a store", () => {
  function setUp() {
    const clock = manualClock()
    const shared = Object.assign(memoryStore({ clock }), { isShared: true })
    const refund = shared.refund.bind(shared)
    const store = leasedStore(shared, { clock })
    const limiter = createLimiter({
      ...{ limit: 16_000, window: "1 minute", algorithm: "fixed-window", field: "service", clock },
      ...{ service: "shop", logger: QUIET, store },
    })
    onTestFinished(() => limiter.close())
    const metering = startMetering()
    const stop = instrument(limiter, { meterProvider: metering.meterProvider })
    const units = () => metering.values("sluice.store.lease.units", "sluice.lease.result")
    const gauge = async (name: string) => (await metering.values(`sluice.store.${name}`))[""]
    return { clock, shared, refund, limiter, units, gauge, stop }
  }

  it("are described by the units that they hold, and by the outcome of these units", async () => {
    const { clock, shared, refund, limiter, units, gauge, stop } = setUp()
    await limiter.decide({}, { cost: 500 })
    await limiter.decide({}, { cost: 100 })
    expect([await gauge("lease.held"), await gauge("hold_off")]).toEqual([400, 0])
    expect(await units()).toEqual({ booked: 500, granted: 100 })
    shared.refund = () => {
      throw new StoreUnavailableError("gone")
    }
    clock.advance(1_000)
    await nextTurn()
    expect(await units()).toEqual({ booked: 500, granted: 100, lost: 400 })
    shared.refund = refund
    // The demand of the previous second was 600.
    await limiter.decide({}, { cost: 200 })
    clock.advance(1_000)
    await nextTurn()
    expect(await units()).toMatchObject({ granted: 100, lost: 400, returned: 600 })
    expect(await gauge("lease.held")).toBe(0)
    expect((await limiter.decide({}, { cost: 16_000 })).retryAfterMs).toBeGreaterThan(0)
    expect(await gauge("hold_off")).toBe(1)
    stop()
    expect(limiter.status.leases).toMatchObject({ held: 0, heldOff: 1, lost: 400 })
  })

  it("do not exist for a store without leases", async () => {
    const limiter = createLimiter({ limit: 1, window: "1 minute", service: "shop", logger: QUIET })
    onTestFinished(() => limiter.close())
    const metering = startMetering()
    instrument(limiter, { meterProvider: metering.meterProvider })
    expect(await metering.series("sluice.store.lease.held")).toEqual([])
    expect(limiter.status.leases).toBeUndefined()
  })
})

describe("the permits of rules", () => {
  it("are described by those that are held, by the oldest, and by those that were renewed or lost", async () => {
    const clock = manualClock()
    const limiter = createLimiter({
      rules: [{ name: "few", field: "ip", concurrent: 5, hold: "4 seconds" }],
      ...{ service: "shop", logger: QUIET, clock },
    })
    onTestFinished(() => limiter.close())
    const metering = startMetering()
    const stop = instrument(limiter, { meterProvider: metering.meterProvider })
    const values = async (...names: string[]) => {
      const each = names.map((name) => metering.values(`sluice.in_flight.${name}`, "sluice.policy.name"))
      return (await Promise.all(each)).map(({ few }) => few)
    }
    expect(await values("held", "oldest", "renewed", "lost")).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ])
    const decisions = [
      await limiter.decide({ remoteAddress: "192.0.2.1" }),
      await limiter.decide({ remoteAddress: "192.0.2.1" }),
    ]
    clock.advance(500)
    expect(await values("held", "oldest")).toEqual([2, 0.5])
    clock.advance(2_200)
    await nextTurn()
    expect(await values("renewed", "lost")).toEqual([2, undefined])
    clock.advance(9_000)
    await nextTurn()
    expect(await values("renewed", "lost")).toEqual([4, 2])
    await Promise.all(decisions.map((decision) => limiter.release(decision)))
    expect(await values("held", "oldest")).toEqual([0, 0])
    stop()
  })
})

describe("the charges of a store to other counters", () => {
  function setUp(store: Store, clock = manualClock()) {
    const limiter = createLimiter({
      ...{ limit: 100, window: "1 minute", algorithm: "fixed-window", field: "service", clock },
      ...{ service: "shop", logger: QUIET, store },
    } as const)
    onTestFinished(() => limiter.close())
    const metering = startMetering()
    instrument(limiter, { meterProvider: metering.meterProvider })
    return { clock, limiter, metering }
  }

  it("to the shared counters are described by the time for which they fail, and by the lost units", async () => {
    const clock = manualClock()
    const shared = Object.assign(memoryStore({ clock }), { isShared: true })
    const store = writeBackStore(shared, { clock })
    const { limiter, metering } = setUp(store, clock)
    const values = async (name: string) =>
      await metering.values(`sluice.store.settle.${name}`, "sluice.mirror")
    const ask = async (cost: number) => {
      await limiter.decide({}, { cost })
      clock.advance(100)
      await nextTurn()
    }
    await ask(1)
    expect([await values("age"), await values("lost")]).toEqual([{ "": 0 }, {}])
    const { refund } = shared
    shared.refund = () => {
      throw new StoreUnavailableError("gone")
    }
    await ask(3)
    clock.advance(1_400)
    await ask(2)
    expect([await values("age"), await values("lost")]).toEqual([{ "": 1.5 }, { "": 5 }])
    shared.refund = refund
    await ask(7)
    expect([await values("age"), await values("lost")]).toEqual([{ "": 0 }, { "": 5 }])
    await store.close()
  })

  it("to data centers are described for each data center", async () => {
    const mirrors = { eu: { lost: 2, failingMs: 0 }, us: { lost: 0, failingMs: 2_500 } }
    const store = Object.assign(memoryStore(), { status: { mirrors } })
    const { metering } = setUp(store)
    const values = async (name: string) =>
      await metering.values(`sluice.store.mirror.${name}`, "sluice.mirror")
    expect([await values("age"), await values("lost")]).toEqual([{ eu: 0, us: 2.5 }, {}])
    store.status.mirrors = { ...mirrors, eu: { lost: 5, failingMs: 0 } }
    expect(await values("lost")).toEqual({ eu: 3 })
    expect(await metering.series("sluice.store.settle.age")).toEqual([])
  })
})
