import type { Lease } from "./lease.ts"

/** The most leases of a store, of about 500 bytes each. */
const MOST_LEASES = 10_000
/** Number of leases that a full table examines to find one that is not needed. */
const SAMPLED = 16

/** A bounded table of leases, by counter and then by partition, so that a lookup does not concatenate a key. */
export class LeaseTable implements Iterable<Lease> {
  readonly #most: number
  readonly #byCounter = new Map<string, Map<string, Lease>>()
  readonly #places = new Map<Lease, number>()
  readonly #all: Lease[] = []
  #next = 0

  constructor(most: number = MOST_LEASES) {
    this.#most = most
  }

  get size(): number {
    return this.#all.length
  }

  find(counter: string, partition: string): Lease | undefined {
    return this.#byCounter.get(counter)?.get(partition)
  }

  /** Adds a lease. Returns the least recently used of 16 leases, which is no longer in the table, if it was full. */
  add(lease: Lease): Lease | undefined {
    const evicted = this.#all.length >= this.#most ? this.#leastUsed() : undefined
    if (evicted !== undefined) this.delete(evicted)
    const { policy, partition } = lease
    let ofCounter = this.#byCounter.get(policy.counter)
    if (ofCounter === undefined) {
      ofCounter = new Map()
      this.#byCounter.set(policy.counter, ofCounter)
    }
    ofCounter.set(partition, lease)
    this.#places.set(lease, this.#all.length)
    this.#all.push(lease)
    return evicted
  }

  delete(lease: Lease): void {
    const place = this.#places.get(lease)
    if (place === undefined) return
    const { policy, partition } = lease
    const ofCounter = this.#byCounter.get(policy.counter)
    ofCounter?.delete(partition)
    if (ofCounter?.size === 0) this.#byCounter.delete(policy.counter)
    this.#places.delete(lease)
    const last = this.#all.pop() as Lease
    if (last === lease) return
    this.#all[place] = last
    this.#places.set(last, place)
  }

  /** Iterates over a copy, so that leases may be deleted meanwhile. */
  [Symbol.iterator](): IterableIterator<Lease> {
    return [...this.#all][Symbol.iterator]()
  }

  #leastUsed(): Lease {
    let least = this.#all[this.#next % this.#all.length] as Lease
    for (let i = 0; i < SAMPLED; i++) {
      const lease = this.#all[this.#next++ % this.#all.length] as Lease
      if (lease.usedMs < least.usedMs) least = lease
    }
    return least
  }
}
