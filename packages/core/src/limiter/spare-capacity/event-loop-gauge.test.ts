import { setTimeout as pause } from "node:timers/promises"
import { expect, it } from "vitest"
import { latenessOf, openGauge, utilizationOf } from "./event-loop-gauge.ts"

it.each([
  ["a loop in time", 20, 250, 0],
  ["a sample that came early", 19, 250, 0],
  ["a stall that Node's timer has seen", 70, 250, 50],
  ["a stall that only the sample has seen", 20, 290, 40],
  ["the longer of two stalls", 70, 320, 70],
])("latenessOf returns the delay of %s", (_case, longestMs, sinceSampleMs, lateMs) => {
  expect(latenessOf(longestMs * 1e6, sinceSampleMs)).toBe(lateMs)
})

it.each([
  [0, 0],
  [0.4, 0.4],
  [1, 1],
  [1.3e11, Number.NaN],
  [-1, Number.NaN],
  [Number.NaN, Number.NaN],
])("utilizationOf turns a measured utilization of %s into %s", (measured, expected) => {
  expect(utilizationOf(measured)).toBe(expected)
})

function spin(ms: number): void {
  const endMs = performance.now() + ms
  while (performance.now() < endMs);
}

it("the gauge of the event loop reports a stall once, in its delay and its utilization", async () => {
  const gauge = openGauge()
  // Node's own timer has to run before and after the stall.
  await pause(60)
  spin(300)
  await pause(60)
  const stalled = gauge.sample()
  expect(stalled.delayMs).toBeGreaterThan(200)
  // Occasionally Node cannot determine the utilization.
  if (!Number.isNaN(stalled.utilization)) expect(stalled.utilization).toBeGreaterThan(0.4)
  // There was no other stall since the previous sample.
  expect(gauge.sample().delayMs).toBeLessThan(stalled.delayMs)
  gauge.stop()
})

it("a stall that begins right after a sample is reported by the next one, which is late", () => {
  const gauge = openGauge()
  gauge.sample()
  spin(400)
  expect(gauge.sample().delayMs).toBeGreaterThanOrEqual(149)
  gauge.stop()
})
