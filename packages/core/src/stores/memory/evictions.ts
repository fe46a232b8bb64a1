import type { EvictionEvent } from "../store.ts"

/**
 * Maximum number of events per second. The number is limited, because thousands of limiters may listen to one store,
 * and a flood of new keys evicts a counter with each request.
 */
const EVENTS_PER_SECOND = 10

type Collected = { -readonly [Name in keyof EvictionEvent]: EvictionEvent[Name] }

/**
 * A collector of evictions, with at most ten events per second. The last event of a batch counts all further evictions.
 */
export class Evictions {
  #collected: Collected[] = []
  #second = -1
  #leftOfSecond = 0
  #total = 0

  /** Number of evictions since this collector was created. */
  get total(): number {
    return this.#total
  }

  get isEmpty(): boolean {
    return this.#collected.length === 0
  }

  add(emptyAfterMs: number, releaseAfterMs: number): void {
    this.#total++
    if (this.#collected.length < EVENTS_PER_SECOND) {
      this.#collected.push({ type: "evicted", counters: 1, emptyAfterMs, releaseAfterMs })
      return
    }
    const last = this.#collected[EVENTS_PER_SECOND - 1] as Collected
    last.counters++
    last.emptyAfterMs = emptyAfterMs
    last.releaseAfterMs = releaseAfterMs
  }

  /** Returns the events that may be emitted now, and keeps the remaining evictions for later. */
  take(nowMs: number): readonly EvictionEvent[] {
    const second = Math.floor(nowMs / 1000)
    if (second !== this.#second) {
      this.#second = second
      this.#leftOfSecond = EVENTS_PER_SECOND
    }
    const due = this.#collected.splice(0, this.#leftOfSecond)
    this.#leftOfSecond -= due.length
    return due
  }
}
