import { algorithmOf, type CounterKey, type CounterReading, type StoreReading } from "@sluice/core/stores"

/** Most counters per call that reads them. This limits the time for which a call blocks the server. */
export const MOST_READ = 64

/** The state of a counter that a server has returned. */
export interface ReadCounter extends CounterReading {
  /** The server's time. */
  readonly nowMs: number
}

/** Returns the states of counters, all at the latest of their servers' times. */
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
