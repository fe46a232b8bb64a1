import { monitorEventLoopDelay } from "node:perf_hooks"
import { type LoopSample, SAMPLE_EVERY_MS } from "./spare-capacity.ts"

/** A gauge of this thread's event loop. Each sample covers the time since the previous sample. */
export interface LoopGauge {
  sample(): LoopSample
  stop(): void
}

/**
 * Interval of Node's own timer in milliseconds. The timer runs in native code, so 50 runs a second have no measurable
 * cost.
 */
const RESOLUTION_MS = 20

/**
 * Returns the delay of the event loop in milliseconds. The result combines the longest interval of Node's timer and
 * the interval between two samples. The timer misses a stall that begins right after a sample, but such a stall
 * delays the next sample.
 */
export function latenessOf(longestNs: number, sinceSampleMs: number): number {
  return Math.max(0, longestNs / 1e6 - RESOLUTION_MS, sinceSampleMs - SAMPLE_EVERY_MS)
}

/**
 * Returns the measured utilization. Returns NaN if the utilization is not between 0 and 1, because libuv's idle time
 * is sometimes far too large.
 */
export function utilizationOf(measured: number): number {
  return measured >= 0 && measured <= 1 ? measured : Number.NaN
}

/** Starts measuring utilization and delay with node:perf_hooks. Does not keep the process alive. */
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
