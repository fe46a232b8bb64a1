/** The state of the event loop since the previous sample. */
export interface LoopSample {
  /** The fraction of the time in which the loop was busy, 0 to 1. */
  readonly utilization: number
  /** How much later than due the latest of its timers ran, in milliseconds. */
  readonly delayMs: number
}

/** Whether there is spare capacity, according to the samples so far. */
export interface SpareCapacity {
  readonly isSpare: boolean
  /** Calm samples in a row, counted while there is no spare capacity. */
  readonly calmSamples: number
}

/** Milliseconds from one sample to the next. */
export const SAMPLE_EVERY_MS = 250

/**
 * At this utilization or delay, requests queue up and spare capacity ends. A single sample is enough, because elastic
 * throttling must not overload the process. So extra load ends within two samples, half a second.
 */
const SATURATED: LoopSample = { utilization: 0.9, delayMs: 100 }

/**
 * Below these values a sample is calm. Between these and the values above nothing changes, so a load near a bound does
 * not flap.
 */
const CALM: LoopSample = { utilization: 0.75, delayMs: 50 }

/**
 * Number of calm samples in a row after which capacity counts as spare: one second. Requests admitted above the limit
 * then may saturate the loop again, at most once a second.
 */
const CALM_SAMPLES = 4

/**
 * The state before any sample. A process is busiest when it starts, so there is no spare capacity until it was calm.
 */
export const UNKNOWN: SpareCapacity = { isSpare: false, calmSamples: 0 }

/** Returns the state after one more sample. A sample that is NaN counts as saturated, because the load is unknown. */
export function afterSample({ isSpare, calmSamples }: SpareCapacity, sample: LoopSample): SpareCapacity {
  if (isSpare) return isWithin(sample, SATURATED) ? { isSpare, calmSamples } : UNKNOWN
  if (!isWithin(sample, CALM)) return UNKNOWN
  const calm = calmSamples + 1
  return calm >= CALM_SAMPLES ? { isSpare: true, calmSamples: 0 } : { isSpare: false, calmSamples: calm }
}

/**
 * True if a sample is so late that the event loop has probably stalled. Then the result of the previous sample is out of date.
 */
export function isOverdue(sinceSampleMs: number): boolean {
  return !(sinceSampleMs < SAMPLE_EVERY_MS + SATURATED.delayMs)
}

function isWithin({ utilization, delayMs }: LoopSample, most: LoopSample): boolean {
  return utilization < most.utilization && delayMs < most.delayMs
}
