/** A request that was admitted at some time between these two times of a monotonic clock. */
export interface Admitted {
  readonly sentMs: number
  readonly answeredMs: number
}

/** The resolution of counters is a millisecond, so two requests may be this much further apart than they seem. */
const TICK_MS = 2

/**
 * Returns the most requests that were certainly admitted within less than `windowMs`: each was sent and answered in
 * that time. Network delays therefore never make a correct limiter look wrong.
 */
export function mostWithin(admitted: readonly Admitted[], windowMs: number): number {
  let most = 0
  for (const { sentMs } of admitted) {
    const endMs = sentMs + windowMs - TICK_MS
    const within = admitted.filter((one) => one.sentMs >= sentMs && one.answeredMs <= endMs)
    most = Math.max(most, within.length)
  }
  return most
}
