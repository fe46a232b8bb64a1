import type { CounterKey } from "../../stores/store.ts"

/** Permits of one reservation in one counter. */
interface Moved {
  readonly permits: number
  readonly endsMs: number
}

/** Number of counters from which on ended permits are removed. */
const FEWEST_TO_SWEEP = 1_000

/**
 * Permits that were moved to reservations, which any process may settle. They count in an outage until the reservation
 * is settled here or the permits end.
 */
export class MovedPermits {
  /** The permits of each counter, the oldest first. */
  readonly #byCounter = new Map<string, Moved[]>()
  #sweepAt = FEWEST_TO_SWEEP

  /** Adds permits that end at `endsMs` unless they are renewed. All times are by the store's clock. */
  add(counter: CounterKey, permits: number, endsMs: number, nowMs: number): void {
    if (this.#byCounter.size >= this.#sweepAt) this.#sweep(nowMs)
    const key = keyOf(counter)
    const moved = this.#byCounter.get(key) ?? []
    while ((moved[0]?.endsMs ?? nowMs + 1) <= nowMs) moved.shift()
    moved.push({ permits, endsMs })
    this.#byCounter.set(key, moved)
  }

  /** Removes the permits of the oldest reservation. It need not be the settled one, because permits are alike. */
  remove(counter: CounterKey): void {
    const key = keyOf(counter)
    const moved = this.#byCounter.get(key) ?? []
    moved.shift()
    if (moved.length === 0) this.#byCounter.delete(key)
  }

  /** Returns the number of permits in a counter. */
  permitsIn(counter: CounterKey, nowMs: number): number {
    let sum = 0
    for (const { permits, endsMs } of this.#byCounter.get(keyOf(counter)) ?? []) {
      if (endsMs > nowMs) sum += permits
    }
    return sum
  }

  /** Number of counters that have permits, or had some until recently. */
  get size(): number {
    return this.#byCounter.size
  }

  /** Waits until twice as many counters remain, so that a sweep costs little for each reservation. */
  #sweep(nowMs: number): void {
    for (const [key, moved] of this.#byCounter) {
      if (moved.every(({ endsMs }) => endsMs <= nowMs)) this.#byCounter.delete(key)
    }
    this.#sweepAt = Math.max(FEWEST_TO_SWEEP, 2 * this.#byCounter.size)
  }
}

function keyOf({ policy, partition }: CounterKey): string {
  return `${policy.counter} ${partition}`
}
