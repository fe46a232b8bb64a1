import { expect, it } from "vitest"
import { UNLIMITED } from "../../decision/decision-record.ts"
import { SafeEvents } from "../../ground/events.ts"
import { type DecisionCall, LIMITER_EVENTS, type LimiterEvents } from "../interface/limiter.ts"
import { DecisionEvents } from "./decision-events.ts"

const open = () => {
  const events = new SafeEvents<LimiterEvents<string>>(LIMITER_EVENTS, () => undefined)
  return { events, decisionEvents: new DecisionEvents(events) }
}

it("DecisionEvents emits nothing and reads no clock without a listener", () => {
  const { events, decisionEvents } = open()
  expect(decisionEvents.start()).toBeUndefined()
  const told: unknown[] = []
  events.on("decision", (...args) => told.push(args))
  // The call began before there was a listener.
  decisionEvents.tell(UNLIMITED, "asked", "decide", undefined, [])
  expect(told).toEqual([])
})

it("DecisionEvents emits an event for a value and for the value of a promise", async () => {
  const { events, decisionEvents } = open()
  const told: [string, DecisionCall["operation"]][] = []
  events.on("decision", (_decision, request, { operation, durationMs }) => {
    expect(durationMs).toBeGreaterThanOrEqual(0)
    told.push([request, operation])
  })
  const startedMs = decisionEvents.start() as number
  expect(decisionEvents.told(UNLIMITED, "value", "decide", startedMs, [])).toBe(UNLIMITED)
  const promise = Promise.resolve(UNLIMITED)
  expect(await decisionEvents.told(promise, "promise", "hold", startedMs, [])).toBe(UNLIMITED)
  expect(told).toEqual([
    ["value", "decide"],
    ["promise", "hold"],
  ])
})
