/** Counters that are kept at most, and the bytes of their packed parts: a full log has thousands. Half in each generation. */
const MOST_COUNTERS = 100_000
const MOST_BYTES = 16 * 1024 * 1024

/** Some values by counter and partition. */
class Generation<Value> {
  /** Nested, so that looking one up does not put a key together. */
  readonly #values = new Map<string, Map<string, Value>>()
  readonly #bytesOf: (value: Value) => number
  size = 0
  bytes = 0

  constructor(bytesOf: (value: Value) => number) {
    this.#bytesOf = bytesOf
  }

  get(counter: string, partition: string): Value | undefined {
    return this.#values.get(counter)?.get(partition)
  }

  set(counter: string, partition: string, value: Value): void {
    let values = this.#values.get(counter)
    if (values === undefined) {
      values = new Map()
      this.#values.set(counter, values)
    }
    const before = values.get(partition)
    if (before === undefined) this.size++
    else this.bytes -= this.#bytesOf(before)
    this.bytes += this.#bytesOf(value)
    values.set(partition, value)
  }

  delete(counter: string, partition: string): void {
    const values = this.#values.get(counter)
    const value = values?.get(partition)
    if (values === undefined || value === undefined) return
    values.delete(partition)
    this.size--
    this.bytes -= this.#bytesOf(value)
  }
}

/**
 * A bounded map by counter and partition that keeps what was used last. It has two generations: a full one becomes the old
 * one, and what is not used until the next one is full is dropped with it. Nothing is ever searched for what to evict.
 */
export class RecentCounters<Value> {
  readonly #turnMs: number
  readonly #bytesOf: (value: Value) => number
  #young: Generation<Value>
  #old: Generation<Value>
  #turnedAtMs = Number.NEGATIVE_INFINITY

  /** A value that is older than two turns of `turnMs` is dropped when another one is set. */
  constructor(turnMs: number, bytesOf: (value: Value) => number) {
    this.#turnMs = turnMs
    this.#bytesOf = bytesOf
    this.#young = new Generation(bytesOf)
    this.#old = new Generation(bytesOf)
  }

  get size(): number {
    return this.#young.size + this.#old.size
  }

  get(counter: string, partition: string): Value | undefined {
    const value = this.#young.get(counter, partition)
    if (value !== undefined || this.#old.size === 0) return value
    const older = this.#old.get(counter, partition)
    if (older === undefined) return undefined
    this.#old.delete(counter, partition)
    this.#add(counter, partition, older)
    return older
  }

  set(counter: string, partition: string, value: Value, nowMs: number): void {
    const sinceMs = nowMs - this.#turnedAtMs
    if (!(sinceMs >= 0 && sinceMs < this.#turnMs)) {
      this.#turn()
      this.#turnedAtMs = nowMs
    }
    if (this.#old.size > 0) this.#old.delete(counter, partition)
    this.#add(counter, partition, value)
  }

  delete(counter: string, partition: string): void {
    this.#young.delete(counter, partition)
    this.#old.delete(counter, partition)
  }

  clear(): void {
    this.#turn()
    this.#turn()
  }

  #add(counter: string, partition: string, value: Value): void {
    const bytes = this.#bytesOf(value)
    if (bytes > MOST_BYTES / 2) {
      this.#young.delete(counter, partition)
      return
    }
    this.#young.set(counter, partition, value)
    if (this.#young.size >= MOST_COUNTERS / 2 || this.#young.bytes > MOST_BYTES / 2) this.#turn()
  }

  #turn(): void {
    this.#old = this.#young
    this.#young = new Generation(this.#bytesOf)
  }
}
