import { monitorEventLoopDelay } from "node:perf_hooks"
import { type LoopSample, SAMPLE_EVERY_MS } from "./spare-capacity.ts"

/** Measures the event loop of this thread from one `sample` to the next. */
export interface LoopGauge {
  sample(): LoopSample
  stop(): void
}

/** Milliseconds between the looks of Node's own timer, in native code: 50 a second cost nothing that can be measured. */
const RESOLUTION_MS = 20

/**
 * Milliseconds that the loop was late, from the longest time between two looks of Node's timer and from that between two samples:
 * the timer misses a stall that begins right after a sample, and then the next sample itself is late.
 */
export function latenessOf(longestNs: number, sinceSampleMs: number): number {
  return Math.max(0, longestNs / 1e6 - RESOLUTION_MS, sinceSampleMs - SAMPLE_EVERY_MS)
}

/** The utilization that Node measured. NaN if it is no part of the time: the idle time of libuv is sometimes far too large. */
export function utilizationOf(measured: number): number {
  return measured >= 0 && measured <= 1 ? measured : Number.NaN
}

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
      const delayMs = latenessOf(histogram.max, sampledAtMs - before.sampledAtMs)
      histogram.reset()
      const busy = performance.eventLoopUtilization(utilization, before.utilization).utilization
      return { utilization: utilizationOf(busy), delayMs }
    },
    stop() {
      histogram.disable()
    },
  }
}
