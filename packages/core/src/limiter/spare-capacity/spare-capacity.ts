/** The state of the event loop since the previous sample. */
export interface LoopSample {
  /** The fraction of the time during which the loop was busy, from 0 to 1. */
  readonly utilization: number
  /** The longest delay of a timer after its due time, in milliseconds. */
  readonly delayMs: number
}

/** Whether there is spare capacity, according to the samples so far. */
export interface SpareCapacity {
  readonly isSpare: boolean
  /** Number of consecutive calm samples, counted while there is no spare capacity. */
  readonly calmSamples: number
}

/** Milliseconds from one sample to the next. */
export const SAMPLE_EVERY_MS = 250

/**
 * At this utilization or delay, requests queue up and spare capacity ends. A single sample is enough, because elastic
 * throttling must not overload the process. The extra load therefore ends within two samples, or half a second.
 */
const SATURATED: LoopSample = { utilization: 0.9, delayMs: 100 }

/**
 * Below these values a sample is calm. Between these values and `SATURATED` nothing changes, so that a load near a
 * bound does not cause flapping.
 */
const CALM: LoopSample = { utilization: 0.75, delayMs: 50 }

/**
 * Number of consecutive calm samples, or one second, after which there is spare capacity. Requests above the limit
 * may then saturate the loop again, at most once a second.
 */
const CALM_SAMPLES = 4

/**
 * The state before any sample. A process is busiest when it starts, so there is no spare capacity until the first
 * calm second.
 */
export const UNKNOWN: SpareCapacity = { isSpare: false, calmSamples: 0 }

/** Returns the state after one more sample. A NaN in the sample counts as saturation, because the load is unknown. */
export function afterSample({ isSpare, calmSamples }: SpareCapacity, sample: LoopSample): SpareCapacity {
  if (isSpare) return isWithin(sample, SATURATED) ? { isSpare, calmSamples } : UNKNOWN
  if (!isWithin(sample, CALM)) return UNKNOWN
  const calm = calmSamples + 1
  return calm >= CALM_SAMPLES ? { isSpare: true, calmSamples: 0 } : { isSpare: false, calmSamples: calm }
}

/**
 * True if a sample is so late that the event loop has probably stalled. The result of the previous sample is then
 * stale.
 */
export function isOverdue(sinceSampleMs: number): boolean {
  return !(sinceSampleMs < SAMPLE_EVERY_MS + SATURATED.delayMs)
}

function isWithin({ utilization, delayMs }: LoopSample, most: LoopSample): boolean {
  return utilization < most.utilization && delayMs < most.delayMs
}
