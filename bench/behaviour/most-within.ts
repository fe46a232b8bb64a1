/** A request that was admitted at some moment between the two, of a clock that does not go back. */
export interface Admitted {
  readonly sentMs: number
  readonly answeredMs: number
}

/** Counters tell milliseconds apart and no more: what seems so long may be as much longer. */
const TICK_MS = 2

/**
 * The most that were admitted, beyond doubt, within less than `windowMs`: the first of them was sent and the last of them
 * answered in that time. So a limiter that keeps its limit is never charged with what the network took.
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
