import {
  createLimiter,
  type Limiter,
  type LimiterOptions,
  memoryStore,
  type RequestFacts,
} from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { instrument } from "@sluice/otel"
import { expect, it, onTestFinished, vi } from "vitest"
import { methodsOf } from "../../packages/core/src/stores/testing/methods-of.ts"
import { createMetrics } from "../../packages/service/src/program/metrics.ts"
import { type Metering, startMetering } from "./metering.ts"

const NAMES = ["r1", "r2", "r3"]

function limiters(count: number, more: Partial<LimiterOptions<RequestFacts>> = {}): Limiter<RequestFacts>[] {
  const store = memoryStore({ clock: manualClock() })
  return Array.from({ length: count }, (_, index) => {
    const rules = NAMES.map((name, n) => ({ name, field: "ip", limit: n + 1, window: "1 hour" }))
    return createLimiter({
      service: `s${index}`,
      rules,
      store,
      clock: manualClock(),
      ...more,
    } as LimiterOptions<RequestFacts>)
  })
}

async function decideOnce(all: readonly Limiter<RequestFacts>[]): Promise<void> {
  for (const limiter of all) await limiter.decide({ remoteAddress: "192.0.2.1" })
}

const DECISIONS = "sluice.policy.decisions"
const LIMITER = "sluice.limiter.name"

async function sums(
  metering: Metering,
): Promise<{ series: number; sum: number; other: number; dropped: number }> {
  const series = await metering.series(DECISIONS)
  const sumOf = (all: typeof series): number => all.reduce((sum, { value }) => sum + (value as number), 0)
  return {
    series: series.length,
    sum: sumOf(series),
    other: sumOf(series.filter(({ attributes }) => attributes[LIMITER] === "_other")),
    dropped: sumOf(series.filter(({ attributes }) => "otel.metric.overflow" in attributes)),
  }
}

it("an app with more rules than the SDK's series limit counts the remaining rules together, and warns once", async () => {
  const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined)
  onTestFinished(() => warn.mockRestore())
  const metering = startMetering()
  const all = limiters(700)
  for (const limiter of all) instrument(limiter, { meterProvider: metering.meterProvider })
  await decideOnce(all)
  expect(await sums(metering)).toEqual({ series: 1_801, sum: 2_100, other: 300, dropped: 0 })
  // The first rule refuses this request, so the other two rules do not count it.
  await decideOnce(all)
  expect(await sums(metering)).toMatchObject({ dropped: 0 })
  const refused = (await metering.series(DECISIONS)).filter(
    ({ attributes }) => attributes["sluice.decision.result"] === "refused",
  )
  expect(refused).toMatchObject([
    {
      attributes: { [LIMITER]: "_other", "sluice.policy.name": "_other", "sluice.refusal.reason": "quota" },
      value: 700,
    },
  ])
  const warnings = warn.mock.calls.filter(([, options]) =>
    JSON.stringify(options).includes("SLUICE_SERIES_LIMIT"),
  )
  expect(warnings).toEqual([
    [
      expect.stringMatching(/^sluice\.policy\.decisions has 1800 series.*cardinalityLimit/),
      expect.anything(),
    ],
  ])
})

it("an outage is counted in separate series, even if all limiters were known before", async () => {
  const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined)
  onTestFinished(() => warn.mockRestore())
  const store = memoryStore({ clock: manualClock() })
  let isDown = false
  const take: typeof store.take = (checks) => {
    if (isDown) throw new Error("gone")
    return store.take(checks)
  }
  const metering = startMetering()
  const all = limiters(1_900, { store: { ...methodsOf(store), take }, logger: { warn() {}, error() {} } })
  for (const limiter of all) instrument(limiter, { meterProvider: metering.meterProvider })
  await decideOnce(all)
  isDown = true
  await decideOnce(all)
  expect(await metering.values("sluice.decision.duration", "sluice.decision.mode", LIMITER)).toMatchObject({
    "normal s0": 1,
    "normal s1799": 1,
    "normal _other": 100,
    "degraded _other": 1_900,
  })
  expect(await metering.values("sluice.store.errors", LIMITER)).toMatchObject({
    s0: 1,
    s1799: 1,
    _other: 100,
  })
})

it("a higher cardinalityLimit keeps all series of a provider whose view has the same limit", async () => {
  const views = [{ instrumentName: "sluice.*", aggregationCardinalityLimit: 5_000 }]
  const metering = startMetering({ views })
  const all = limiters(700)
  for (const limiter of all)
    instrument(limiter, { meterProvider: metering.meterProvider, cardinalityLimit: 5_000 })
  await decideOnce(all)
  expect(await sums(metering)).toEqual({ series: 2_100, sum: 2_100, other: 0, dropped: 0 })
})

it("the decision service exports series for the rules of thousands of services, and gauges for each service", async () => {
  const metrics = createMetrics({})
  onTestFinished(() => metrics.close())
  const all = limiters(2_100)
  for (const [index, limiter] of all.entries()) metrics.onLimiter(limiter as never, `s${index}`)
  await decideOnce(all)
  const lines = (await metrics.read()).text.split("\n")
  const count = (...parts: readonly string[]) =>
    lines.filter((line) => parts.every((part) => line.includes(part))).length
  expect(count("sluice_policy_decisions_total{", '"admitted"')).toBe(6_300)
  expect(count("sluice_request_waiting{", "sluice_limiter_name")).toBe(2_100)
  expect(count("sluice_decision_duration_count{", "sluice_limiter_name")).toBe(2_100)
  expect(count('"s2099"', "sluice_policy_decisions_total{")).toBe(3)
  expect(count("overflow") + count("_other")).toBe(0)
})
