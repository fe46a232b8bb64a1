import { setTimeout as pause } from "node:timers/promises"
import { expect, it } from "vitest"
import { openGauge } from "./event-loop-gauge.ts"

function spin(ms: number): void {
  const endMs = performance.now() + ms
  while (performance.now() < endMs);
}

it("the gauge of the event loop sees a stall, in its delay and its utilization, and then forgets it", async () => {
  const gauge = openGauge()
  // Node's own timer has to have run before and after it.
  await pause(60)
  spin(300)
  await pause(60)
  const stalled = gauge.sample()
  expect(stalled.delayMs).toBeGreaterThan(200)
  expect(stalled.utilization).toBeGreaterThan(0)
  expect(stalled.utilization).toBeLessThanOrEqual(1)
  // Nothing has happened since.
  expect(gauge.sample().delayMs).toBeLessThan(stalled.delayMs)
  gauge.stop()
})

it("a stall that begins right after a sample is seen by the next one, which is late", () => {
  const gauge = openGauge()
  gauge.sample()
  spin(400)
  expect(gauge.sample().delayMs).toBeGreaterThanOrEqual(149)
  gauge.stop()
})
