import { monitorEventLoopDelay } from "node:perf_hooks"
import { type LoopSample, SAMPLE_EVERY_MS } from "./spare-capacity.ts"

/** Measures the event loop of this thread from one `sample` to the next. */
export interface LoopGauge {
  sample(): LoopSample
  stop(): void
}

/** Milliseconds between the looks of Node's own timer, in native code: 50 a second cost nothing that can be measured. */
const RESOLUTION_MS = 20

/** Begins to measure: utilization and delay by node:perf_hooks. Holds no process. */
export function openGauge(): LoopGauge {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  histogram.enable()
  let utilization = performance.eventLoopUtilization()
  let sampledAtMs = performance.now()
  return {
    sample() {
      const before = { utilization, sampledAtMs }
      utilization = performance.eventLoopUtilization()
      sampledAtMs = performance.now()
      // The histogram has the times between two looks, in nanoseconds, and misses a stall that begins right after it
      // was reset: then the sample itself is late.
      const lateMs = Math.max(
        histogram.max / 1e6 - RESOLUTION_MS,
        sampledAtMs - before.sampledAtMs - SAMPLE_EVERY_MS,
      )
      histogram.reset()
      return {
        utilization: performance.eventLoopUtilization(utilization, before.utilization).utilization,
        delayMs: Math.max(0, lateMs),
      }
    },
    stop() {
      histogram.disable()
    },
  }
}
