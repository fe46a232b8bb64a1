import { algorithmOf, type CounterKey, type CounterReading, type StoreReading } from "@sluice/core/stores"

/** Most counters that one call reads, so that no call occupies the server for long. */
export const MOST_READ = 64

/** A counter as a server has returned it. */
export interface ReadCounter extends CounterReading {
  /** The server's time. */
  readonly nowMs: number
}

/** Returns the states of counters at one time, the latest of their servers' times. */
export function readingOf<Key extends CounterKey>(
  keys: readonly Key[],
  found: ReadonlyMap<Key, ReadCounter>,
): StoreReading {
  const read = keys.map((key) => found.get(key) as ReadCounter)
  const nowMs = Math.max(...read.map((counter) => counter.nowMs))
  const counters = keys.map(({ policy }, i) => ({
    state: algorithmOf(policy).at((read[i] as ReadCounter).state, policy, nowMs),
  }))
  return { nowMs, counters }
}
