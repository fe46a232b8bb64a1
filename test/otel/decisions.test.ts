import { metrics } from "@opentelemetry/api"
import type { DataPoint, Histogram } from "@opentelemetry/sdk-metrics"
import { createLimiter, type LimiterOptions, memoryStore, type RequestFacts } from "@sluice/core"
import { createGuard } from "@sluice/core/adapters"
import { manualClock } from "@sluice/core/testing"
import { instrument } from "@sluice/otel"
import { afterEach, describe, expect, it, vi } from "vitest"
import { methodsOf } from "../../packages/core/src/stores/testing/methods-of.ts"
import { until } from "../servers/until.ts"
import { type Metering, startMetering } from "./metering.ts"

const ALICE: RequestFacts = { remoteAddress: "192.0.2.1" }
const POLICY = "sluice.policy.name"
const RESULT = "sluice.decision.result"
const MODE = "sluice.decision.mode"
const REFUSAL = "sluice.refusal.reason"
const OPERATION = "sluice.operation.name"

afterEach(() => {
  vi.restoreAllMocks()
  metrics.disable()
})

function setUp(options: LimiterOptions<RequestFacts>, metering: Metering = startMetering()) {
  const clock = manualClock()
  const limiter = createLimiter({ clock, ...options })
  const end = instrument(limiter, { meterProvider: metering.meterProvider })
  const decide = async (times: number, cost = 1) => {
    for (let i = 0; i < times; i++) await limiter.decide(ALICE, { cost })
  }
  const byPolicy = () => metering.values("sluice.policy.decisions", POLICY, RESULT, REFUSAL)
  return { clock, limiter, end, decide, metering, byPolicy }
}

describe("sluice.policy.decisions", () => {
  it("counts the result of each rule separately: admitted, over the limit, refused, shadowed", async () => {
    const { decide, byPolicy } = setUp({
      rules: [
        { name: "hard", field: "ip", limit: 6, window: "1 minute" },
        {
          name: "soft",
          field: "ip",
          limit: 4,
          window: "1 minute",
          throttle: { kind: "soft", percent: 50 },
        },
        { name: "tried out", field: "ip", limit: 2, window: "1 minute", shadow: true },
      ],
    })
    await decide(8)
    expect(await byPolicy()).toEqual({
      "hard admitted": 6,
      "hard refused quota": 2,
      "soft admitted": 4,
      "soft over_limit": 2,
      "soft refused quota": 2,
      "tried out admitted": 2,
      "tried out shadowed quota": 6,
    })
  })

  it("includes the reason of a refusal, and counts only rules that were checked", async () => {
    const { limiter, decide, byPolicy } = setUp({
      rules: [
        { name: "keyed", field: "header:x-key", limit: 5, window: "1 minute", onMissing: "deny" },
        { name: "listed", field: "ip", limit: 5, window: "1 minute", deny: ["192.0.2.9"] },
      ],
    })
    await decide(1)
    await limiter.decide({ remoteAddress: "192.0.2.9", headers: { "x-key": "k" } })
    await limiter.decide({ ...ALICE, headers: { "x-key": "k" } }, { cost: 6 })
    expect(await byPolicy()).toEqual({
      "keyed refused missing-field": 1,
      "keyed refused cost": 1,
      "listed refused denied": 1,
      "listed refused cost": 1,
    })
  })

  it("accumulates from one collection to the next", async () => {
    const { decide, byPolicy } = setUp({ name: "all", limit: 3, window: "1 minute" })
    await decide(2)
    expect(await byPolicy()).toEqual({ "all admitted": 2 })
    expect(await byPolicy()).toEqual({ "all admitted": 2 })
    await decide(2)
    expect(await byPolicy()).toEqual({ "all admitted": 3, "all refused quota": 1 })
  })

  it("distinguishes decisions that were made without the store", async () => {
    const inner = memoryStore()
    let isGone = false
    const { decide, metering } = setUp({
      name: "all",
      limit: 1,
      window: "1 day",
      store: {
        ...methodsOf(inner),
        take: (checks) => (isGone ? Promise.reject(new Error("gone")) : inner.take(checks)),
      },
      logger: { warn() {}, error() {} },
    })
    // One decision is made with the store and two are made without it. No metrics are collected between these
    // decisions.
    await decide(1)
    isGone = true
    await decide(3)
    const told = { "admitted normal": 1, "admitted degraded": 1, "refused degraded": 2 }
    expect(await metering.values("sluice.policy.decisions", RESULT, MODE)).toEqual(told)
    expect(await metering.values("sluice.decision.duration", RESULT, MODE)).toEqual(told)
  })
})

describe("sluice.policy.near_limit", () => {
  it("counts the clients that have used a percentage of a limit, until measuring ends", async () => {
    const { limiter, decide, end, metering } = setUp({
      name: "all",
      limit: 10,
      window: "1 minute",
      notify: [80, 100],
    })
    const reports = () => metering.values("sluice.policy.near_limit", POLICY, "sluice.policy.threshold")
    await decide(9)
    await limiter.decide({ remoteAddress: "192.0.2.2" }, { cost: 8 })
    expect(await reports()).toEqual({ "all 80": 2 })
    await decide(3)
    expect(await reports()).toEqual({ "all 80": 2, "all 100": 1 })
    end()
    await limiter.decide({ remoteAddress: "192.0.2.3" }, { cost: 10 })
    expect(await reports()).toEqual({ "all 80": 2, "all 100": 1 })
  })
})

describe("sluice.decision.duration", () => {
  it("counts each decision once by its operation, for any number of rules", async () => {
    const { clock, limiter, metering } = setUp({
      rules: [
        { name: "one", field: "ip", limit: 9, window: "1 minute", throttle: { kind: "soft", percent: 12 } },
        { name: "two", field: "ip", limit: 10, window: "1 hour", match: { path: "/api" } },
      ],
    })
    await limiter.decide(ALICE)
    await limiter.enforce(ALICE)
    await limiter.takeUpTo(ALICE, 7)
    await limiter.decide(ALICE)
    await limiter.decide(ALICE)
    const waiting = limiter.acquire(ALICE)
    await until("it waits", () => limiter.status.waiting === 1)
    clock.advance(120_000)
    await waiting
    expect(await metering.values("sluice.decision.duration", OPERATION, RESULT)).toEqual({
      "decide admitted": 2,
      "decide over_limit": 1,
      "decide refused": 1,
      "takeUpTo admitted": 1,
      "acquire admitted": 1,
    })
  })

  it("counts a request to which no rule applies", async () => {
    const { decide, metering, byPolicy } = setUp({ rules: [] })
    await decide(2)
    expect(await metering.values("sluice.decision.duration", RESULT)).toEqual({ admitted: 2 })
    expect(await byPolicy()).toEqual({})
  })

  it("is in seconds, with a bucket boundary at 50 ms", async () => {
    let nowMs = 0
    vi.spyOn(performance, "now").mockImplementation(() => nowMs)
    const { limiter, metering } = setUp({
      limit: 10,
      window: "1 minute",
      // The limiter calls this function while it decides, so the clock advances during the decision.
      cost: () => {
        nowMs += 50
        return 1
      },
    })
    await limiter.decide(ALICE)
    const found = (await metering.collect()).get("sluice.decision.duration")
    expect(found?.descriptor.unit).toBe("s")
    const [point] = (found?.dataPoints ?? []) as readonly DataPoint<Histogram>[]
    expect(point?.value.sum).toBe(0.05)
    expect(point?.value.buckets.counts[point.value.buckets.boundaries.indexOf(0.05)]).toBe(1)
  })
})

describe("instrument", () => {
  it("counts decisions of adapters and of their route limiters as the limiter's decisions", async () => {
    const { limiter, byPolicy } = setUp({ name: "all", limit: 9, window: "1 minute" })
    const guard = createGuard({ limiter })
    const route = guard.forRoute({ limit: 1, window: "1 minute" }, { label: "route" })
    await new Promise((resolve) => setImmediate(resolve))
    await guard.check(ALICE, {})
    await route.check(ALICE, {})
    await route.check(ALICE, {})
    expect(await byPolicy()).toEqual({ "all admitted": 1, "route admitted": 1, "route refused quota": 1 })
  })

  it("names the limiter after its service, or as the option says", async () => {
    const metering = startMetering()
    const { meterProvider } = metering
    const shop = createLimiter({ limit: 1, window: "1 minute", service: "shop" })
    const login = createLimiter({ limit: 1, window: "1 minute", service: "shop" })
    instrument(shop, { meterProvider })
    instrument(login, { meterProvider, name: "login" })
    await shop.decide(ALICE)
    await login.decide(ALICE)
    await login.decide(ALICE)
    expect(await metering.values("sluice.decision.duration", "sluice.limiter.name", RESULT)).toEqual({
      "shop admitted": 1,
      "login admitted": 1,
      "login refused": 1,
    })
  })

  it("uses the global provider if none is given", async () => {
    const metering = startMetering()
    metrics.setGlobalMeterProvider(metering.meterProvider)
    const limiter = createLimiter({ limit: 1, window: "1 minute" })
    instrument(limiter)
    await limiter.decide(ALICE)
    expect(await metering.values("sluice.decision.duration", RESULT)).toEqual({ admitted: 1 })
  })

  it("does not affect decisions if OpenTelemetry is not set up", async () => {
    const limiter = createLimiter({ limit: 1, window: "1 minute" })
    const end = instrument(limiter)
    expect((await limiter.decide(ALICE)).allowed).toBe(true)
    end()
  })

  it("sets the name and version of its scope", async () => {
    const { meterProvider } = startMetering()
    const getMeter = vi.spyOn(meterProvider, "getMeter")
    instrument(createLimiter({ limit: 1, window: "1 minute" }), { meterProvider })
    expect(getMeter).toHaveBeenCalledWith("@sluice/otel", expect.stringMatching(/^\d+\.\d+\.\d+/))
  })

  it("stops counting once it has been ended, and keeps its counts", async () => {
    const { limiter, end, decide, metering, byPolicy } = setUp({ name: "all", limit: 9, window: "1 minute" })
    await decide(2)
    end()
    end()
    await decide(1)
    expect(await byPolicy()).toEqual({ "all admitted": 2 })
    expect(await metering.values("sluice.decision.duration", RESULT)).toEqual({ admitted: 2 })
    await limiter.close()
  })

  it("counts each decision once while two modules measure the limiter", async () => {
    const { limiter, end, decide, metering, byPolicy } = setUp({ name: "all", limit: 9, window: "1 minute" })
    const { meterProvider } = metering
    const endOther = instrument(limiter, { meterProvider, name: "default" })
    await decide(2)
    expect(await byPolicy()).toEqual({ "all admitted": 2 })
    expect(await metering.values("sluice.decision.duration", RESULT)).toEqual({ admitted: 2 })
    end()
    end()
    await decide(1)
    expect(await byPolicy()).toEqual({ "all admitted": 3 })
    endOther()
    await decide(1)
    expect(await byPolicy()).toEqual({ "all admitted": 3 })
    instrument(limiter, { meterProvider })
    await decide(1)
    expect(await byPolicy()).toEqual({ "all admitted": 4 })
  })

  it("ends when the limiter is closed, and releases the limiter", async () => {
    const { limiter, decide, metering, byPolicy } = setUp({ name: "all", limit: 9, window: "1 minute" })
    await decide(2)
    const read = vi.spyOn(limiter, "status", "get")
    await metering.collect()
    expect(read).toHaveBeenCalled()
    await decide(1)
    await limiter.close()
    read.mockClear()
    expect(await byPolicy()).toEqual({ "all admitted": 3 })
    expect(read).not.toHaveBeenCalled()
  })

  it("reports all problems of its arguments", () => {
    const wrong = { nam: "x", name: "", meterProvider: {} }
    const call = () => instrument(undefined as never, wrong as never)
    expect(call).toThrow(/limiter: is missing; accepted: a limiter that createLimiter\(\) returned/)
    expect(call).toThrow(/nam: is not an option of instrument\(\); did you mean "name"\?/)
    expect(call).toThrow(/name: "" is not a name; accepted: a non-empty string/)
    expect(call).toThrow(
      /meterProvider: \{\} is not a meter provider; accepted: a MeterProvider of OpenTelemetry/,
    )
    const limiter = createLimiter({ limit: 1, window: "1 minute" })
    for (const cardinalityLimit of [0, 999, 1_000.5, "2000"] as number[]) {
      expect(() => instrument(limiter, { cardinalityLimit })).toThrow(
        `cardinalityLimit: ${JSON.stringify(cardinalityLimit)} is not a limit of series; accepted: a whole number from 1000`,
      )
    }
    for (const none of [null, 5, []]) {
      expect(() => instrument(limiter, none as never)).toThrow(/(null|5|\[\]) is not an options object/)
    }
    expect(() => instrument(limiter, { name: 5, meterProvider: null } as never)).toThrow(/name: 5 .*null/s)
    instrument(limiter, { name: undefined, meterProvider: undefined })()
  })
})
