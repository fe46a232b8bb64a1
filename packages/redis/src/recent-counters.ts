/**
 * The maximum number of counters in both generations, and of bytes in their packed parts. The bytes are limited too,
 * because a full log takes thousands of bytes.
 */
const MOST_COUNTERS = 100_000
const MOST_BYTES = 16 * 1024 * 1024

/** Values by counter and then by partition. Two nested maps avoid concatenating a key for each lookup. */
type Generation<Value> = Map<string, Map<string, Value>>

/**
 * A bounded map by counter and partition that keeps recently used values. Setting or reading a value puts the value
 * into the current generation. When the current generation is full or old, it replaces the previous generation, whose
 * values are dropped.
 */
export class RecentCounters<Value> {
  readonly #turnMs: number
  readonly #bytesOf: (value: Value) => number
  #current: Generation<Value> = new Map()
  #previous: Generation<Value> = new Map()
  /**
   * Number and bytes of the values that were put into the current generation. Includes values that were later
   * overwritten or deleted.
   */
  #puts = 0
  #bytes = 0
  #turnedAtMs = Number.NEGATIVE_INFINITY

  /**
   * A generation lasts at most `turnMs`. A value that is unused for two generations is dropped when another value is
   * set.
   */
  constructor(turnMs: number, bytesOf: (value: Value) => number) {
    this.#turnMs = turnMs
    this.#bytesOf = bytesOf
  }

  /** True if no value was set or used in the two latest generations. */
  get isEmpty(): boolean {
    return this.#current.size === 0 && this.#previous.size === 0
  }

  get(counter: string, partition: string): Value | undefined {
    const value = this.#current.get(counter)?.get(partition)
    if (value !== undefined) return value
    const older = this.#previous.get(counter)?.get(partition)
    if (older !== undefined) this.#put(counter, partition, older)
    return older
  }

  set(counter: string, partition: string, value: Value, nowMs: number): void {
    const sinceMs = nowMs - this.#turnedAtMs
    // A clock that went back also starts a new generation.
    if (!(sinceMs >= 0 && sinceMs < this.#turnMs)) {
      this.#turn()
      this.#turnedAtMs = nowMs
    }
    this.#put(counter, partition, value)
  }

  delete(counter: string, partition: string): void {
    this.#current.get(counter)?.delete(partition)
    this.#previous.get(counter)?.delete(partition)
  }

  clear(): void {
    this.#turn()
    this.#turn()
  }

  #put(counter: string, partition: string, value: Value): void {
    let values = this.#current.get(counter)
    if (values === undefined) {
      values = new Map()
      this.#current.set(counter, values)
    }
    values.set(partition, value)
    this.#puts++
    this.#bytes += this.#bytesOf(value)
    if (this.#puts >= MOST_COUNTERS / 2 || this.#bytes > MOST_BYTES / 2) this.#turn()
  }

  #turn(): void {
    this.#previous = this.#current
    this.#current = new Map()
    this.#puts = 0
    this.#bytes = 0
  }
}
