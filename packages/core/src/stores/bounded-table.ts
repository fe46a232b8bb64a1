import type { CounterKey } from "./store.ts"

/** Number of entries that a full table examines to find one that it can evict. */
const SAMPLED = 16

/** The data that a process keeps for one counter. */
export interface TableEntry extends CounterKey {
  /** When a request last used the counter. */
  readonly usedMs: number
}

/**
 * A bounded table of counters, indexed first by counter and then by partition, so that a lookup does not concatenate
 * a key.
 */
export class BoundedTable<Entry extends TableEntry> implements Iterable<Entry> {
  readonly #most: number
  readonly #byCounter = new Map<string, Map<string, Entry>>()
  readonly #places = new Map<Entry, number>()
  readonly #all: Entry[] = []
  #next = 0

  /** `most` is the largest number of entries. */
  constructor(most: number) {
    this.#most = most
  }

  /** Number of entries. */
  get size(): number {
    return this.#all.length
  }

  /** Returns the entry of a counter and a partition. */
  find(counter: string, partition: string): Entry | undefined {
    return this.#byCounter.get(counter)?.get(partition)
  }

  /** Adds an entry. A full table first removes the least recently used of 16 entries, and returns it. */
  add(entry: Entry): Entry | undefined {
    const evicted = this.leastUsed()
    if (evicted !== undefined) this.delete(evicted)
    const { policy, partition } = entry
    let ofCounter = this.#byCounter.get(policy.counter)
    if (ofCounter === undefined) {
      ofCounter = new Map()
      this.#byCounter.set(policy.counter, ofCounter)
    }
    ofCounter.set(partition, entry)
    this.#places.set(entry, this.#all.length)
    this.#all.push(entry)
    return evicted
  }

  /** Removes an entry. A no-op if the entry is not in the table. */
  delete(entry: Entry): void {
    const place = this.#places.get(entry)
    if (place === undefined) return
    const { policy, partition } = entry
    const ofCounter = this.#byCounter.get(policy.counter)
    ofCounter?.delete(partition)
    if (ofCounter?.size === 0) this.#byCounter.delete(policy.counter)
    this.#places.delete(entry)
    const last = this.#all.pop() as Entry
    if (last === entry) return
    this.#all[place] = last
    this.#places.set(last, place)
  }

  /** Returns the next entry, or the first entry after the last entry. Undefined if the table is empty. */
  next(): Entry | undefined {
    return this.#all[this.#next++ % this.#all.length]
  }

  /** Iterates over a copy, so that entries may be deleted during the iteration. */
  [Symbol.iterator](): IterableIterator<Entry> {
    return [...this.#all][Symbol.iterator]()
  }

  /** Returns the least recently used of 16 entries if the table is full. Otherwise returns undefined. */
  leastUsed(): Entry | undefined {
    if (this.#all.length < this.#most) return undefined
    let least = this.next() as Entry
    for (let i = 1; i < SAMPLED; i++) {
      const entry = this.next() as Entry
      if (entry.usedMs < least.usedMs) least = entry
    }
    return least
  }
}
