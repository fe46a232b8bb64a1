import { expect, it } from "vitest"
import { UNLIMITED } from "../decision/decision-record.ts"
import { SafeEvents } from "../ground/events.ts"
import { DecisionReporter } from "./decision-events.ts"
import type { DecisionCall, LimiterEvents } from "./limiter.ts"
import { LIMITER_EVENTS } from "./parts.ts"

const open = () => {
  const events = new SafeEvents<LimiterEvents<string>>(LIMITER_EVENTS, () => undefined)
  return { events, reporter: new DecisionReporter(events) }
}

it("tells nobody where nobody listens, and reads no clock", () => {
  const { events, reporter } = open()
  expect(reporter.start()).toBeUndefined()
  const told: unknown[] = []
  events.on("decision", (...args) => told.push(args))
  // Of a call that began before anybody listened.
  expect(reporter.told(UNLIMITED, "asked", "decide", undefined)).toBe(UNLIMITED)
  reporter.tell(UNLIMITED, "asked", "decide", undefined)
  expect(told).toEqual([])
})

it("tells of a value, of what a promise yields, and not of what was never decided", async () => {
  const { events, reporter } = open()
  const told: [string, DecisionCall["operation"]][] = []
  events.on("decision", (_decision, request, { operation, durationMs }) => {
    expect(durationMs).toBeGreaterThanOrEqual(0)
    told.push([request, operation])
  })
  const startedMs = reporter.start()
  expect(reporter.told(UNLIMITED, "value", "decide", startedMs)).toBe(UNLIMITED)
  expect(await reporter.told(Promise.resolve(UNLIMITED), "promise", "hold", startedMs)).toBe(UNLIMITED)
  expect(reporter.told(undefined, "gone", "hold", startedMs)).toBeUndefined()
  expect(await reporter.told(Promise.resolve(undefined), "gone", "hold", startedMs)).toBeUndefined()
  expect(told).toEqual([
    ["value", "decide"],
    ["promise", "hold"],
  ])
})
