import { setImmediate as nextTurn } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import { ClosedError, StoreUnavailableError } from "../../ground/errors.ts"
import { SafeEvents } from "../../ground/events.ts"
import { manualClock } from "../../ground/manual-clock.ts"
import { createWarner } from "../../ground/warnings.ts"
import { memoryStore } from "../../stores/memory/memory-store.ts"
import type { StoreEvent } from "../../stores/store.ts"
import { methodsOf } from "../../stores/testing/methods-of.ts"
import { LIMITER_EVENTS, type LimiterEvents } from "../interface/limiter.ts"
import type { LimiterOptions } from "../options/options.ts"
import { parseOptions } from "../options/parse-options.ts"
import { StoreReports } from "./store-reports.ts"

const DOWN = new StoreUnavailableError("The server is down.")

/**
 * Sets up the reports of a limiter, with the codes and first sentences of its warnings, and the names of its events.
 */
function setUp(options: Partial<LimiterOptions<unknown>> = {}) {
  const warned: string[] = []
  const emitted: unknown[] = []
  const events = new SafeEvents<LimiterEvents<unknown>>(LIMITER_EVENTS, (error) =>
    expect.unreachable(String(error)),
  )
  for (const name of ["refund-lost", "charges-lost", "evicted", "degraded"] as const)
    events.on(name, (event) => emitted.push(event))
  const warner = createWarner({ warn() {}, error() {} }, ({ code, message }) =>
    warned.push(`${code} ${message.split(/[.:]/, 1)}`),
  )
  const clock = manualClock()
  const { listener } = new StoreReports(
    parseOptions({ limit: 5, window: "1 minute", clock, ...options }),
    events,
    warner,
  )
  return { clock, listener, warned, emitted }
}

/** Sets up the reports of a limiter over a store that emits the events that `emit` receives. */
function setUpStore() {
  const listeners: ((event: StoreEvent) => void)[] = []
  const store = {
    ...methodsOf(memoryStore()),
    subscribe: (listener: (event: StoreEvent) => void) => {
      listeners.push(listener)
      return () => undefined
    },
  }
  const emit = (event: StoreEvent): void => {
    for (const listener of listeners) listener(event)
  }
  return { ...setUp({ store }), emit }
}

describe("an event of a store", () => {
  const warning = { code: "SLUICE_STORE_EVICTS", message: "Redis evicts keys." } as const
  it.each<[StoreEvent, string, boolean]>([
    [
      { type: "refund-lost", error: DOWN },
      "SLUICE_REFUND_LOST A refund was lost, so its units may stay taken until their window passes",
      true,
    ],
    [
      { type: "charges-lost", to: "eu", units: 2, error: DOWN },
      "SLUICE_CHARGES_LOST Admitted units were not charged to other counters, so these may admit as many units again",
      true,
    ],
    [{ type: "warning", ...warning, subject: "" }, "SLUICE_STORE_EVICTS Redis evicts keys", false],
    [
      { type: "evicted", counters: 1, emptyAfterMs: 5_000, releaseAfterMs: 0 },
      "SLUICE_STORE_TOO_SMALL The memory store is full and evicted a counter that was still in use, so its client may exceed the limit",
      true,
    ],
  ])("is logged, and emitted unless it is a warning: $type", (event, line, isEmitted) => {
    const { warned, emitted, emit } = setUpStore()
    emit(event)
    expect([warned, emitted]).toEqual([[line], isEmitted ? [event] : []])
  })
})

it("later losses are logged with their number after a minute", async () => {
  const { clock, warned, emit } = setUpStore()
  const lost = { type: "charges-lost", to: "eu", units: 2, error: DOWN } as const
  for (let i = 0; i < 3; i++) emit(lost)
  clock.advance(60_000)
  await nextTurn()
  emit(lost)
  clock.advance(60_000)
  await nextTurn()
  expect(warned.map((line) => line.replace(/, so.*/, ""))).toEqual([
    "SLUICE_CHARGES_LOST Admitted units were not charged to other counters",
    "SLUICE_CHARGES_LOST Admitted units were not charged to other counters 2 times",
    "SLUICE_CHARGES_LOST Admitted units were not charged to other counters",
  ])
})

describe("a store that was closed with its limiter", () => {
  const closed = new ClosedError("The store has been closed.")

  it("does not report its closing as another cause of an outage", () => {
    const { listener, warned, emitted } = setUp()
    listener.onDegraded(DOWN, "requests are admitted")
    listener.onFailedAgain(closed)
    expect([warned, emitted]).toEqual([["SLUICE_DEGRADED The server is down"], [DOWN]])
  })

  it("reports no further cause of the outage that was not reported", () => {
    const { listener, warned } = setUp()
    listener.onDegraded(new StoreUnavailableError("closed", { cause: closed }), "requests are admitted")
    listener.onFailedAgain(DOWN)
    expect(warned).toEqual([])
  })
})
