/** What the event loop did since the sample before. */
export interface LoopSample {
  /** The part of the time in which it was busy, 0 to 1. */
  readonly utilization: number
  /** How much later than due the latest of its timers ran, in milliseconds. */
  readonly delayMs: number
}

/** Whether there is capacity to spare, by the samples so far. */
export interface SpareCapacity {
  readonly isSpare: boolean
  /** Calm samples in a row, counted while there is none to spare. */
  readonly calmSamples: number
}

/** Milliseconds from one sample to the next. */
export const SAMPLE_EVERY_MS = 250

/**
 * Busier than this, or later, and requests wait in line. One sample is enough: the load that is taken on in vain is
 * what elastic throttling must not cause, so it ends within two samples, half a second.
 */
const SATURATED: LoopSample = { utilization: 0.9, delayMs: 100 }

/** What is above it is not calm: between the two nothing changes, so that a load near one of them makes nothing flap. */
const CALM: LoopSample = { utilization: 0.75, delayMs: 50 }

/** A second. What is admitted above the limit from then on may saturate the loop again: once a second at the most. */
const CALM_SAMPLES = 4

/** Nothing is known of a process that starts, and it is busiest then: there is none to spare until it was calm. */
export const UNKNOWN: SpareCapacity = { isSpare: false, calmSamples: 0 }

/** What is known when one more sample has been taken. A sample that is no number is a loop that nobody can judge. */
export function afterSample({ isSpare, calmSamples }: SpareCapacity, sample: LoopSample): SpareCapacity {
  if (isSpare) return isWithin(sample, SATURATED) ? { isSpare, calmSamples } : UNKNOWN
  if (!isWithin(sample, CALM)) return UNKNOWN
  const calm = calmSamples + 1
  return calm >= CALM_SAMPLES ? { isSpare: true, calmSamples: 0 } : { isSpare: false, calmSamples: calm }
}

/** Whether a sample that was due is so late that the loop stands still: what it said before is not true any more. */
export function isOverdue(sinceSampleMs: number): boolean {
  return !(sinceSampleMs < SAMPLE_EVERY_MS + SATURATED.delayMs)
}

function isWithin({ utilization, delayMs }: LoopSample, most: LoopSample): boolean {
  return utilization < most.utilization && delayMs < most.delayMs
}
