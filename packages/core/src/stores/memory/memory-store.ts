import { type Clock, isCountable } from "../../ground/clock.ts"
import { ClosedError, StoreUnavailableError, textOf } from "../../ground/errors.ts"
import { makeStringsQuick } from "../../ground/quick-strings.ts"
import { Counters } from "../counters.ts"
import { guardedStore } from "../foreign-store.ts"
import type { Check, CounterKey, EvictionEvent, Refund, Store, StoreReading, StoreResult } from "../store.ts"
import { StoreListeners } from "../store-listeners.ts"
import { CounterTable } from "./counter-table.ts"
import { Evictions } from "./evictions.ts"
import { type KeyHash, keyHasher } from "./key-hash.ts"
import { type MemoryStoreOptions, parseOptions } from "./options.ts"

export type { MemoryStoreOptions } from "./options.ts"

/** A store in the memory of this process. The methods of this store return values and never promises. */
export interface MemoryStore extends Store {
  /** Number of counters in the store, including expired counters that have not been swept yet. */
  readonly size: number
  /** Number of counters that were evicted while they still had an effect, since the store was created. */
  readonly evictions: number
  take(checks: readonly Check[]): StoreResult
  read(checks: readonly Check[]): StoreReading
  refund(refunds: readonly Refund[]): void
  reset(keys: readonly CounterKey[]): void
  /** Deletes all counters, for tests. `resetAll` of a `manualClock` calls this method. */
  resetAll(): void
  subscribe(listener: (event: EvictionEvent) => void): () => void
  close(): void
}

/**
 * Creates a store that keeps at most `maxKeys` counters in the memory of this process. A full store samples 16
 * counters and evicts an expired counter or the least recently used counter. Clients that are being refused are
 * evicted last. The store emits an event if the evicted counter still had an effect.
 *
 * Every call is atomic. Worker threads and `node:cluster` processes do not share the store, so each would grant a
 * separate quota.
 * @example
 * ```ts
 * import { createLimiter, memoryStore } from "@sluice/core"
 *
 * // Two limiters that share a store; their rules have different names.
 * const store = memoryStore({ maxKeys: 100_000 }) // some 6 MB when it is full
 * const searches = createLimiter({ name: "search", limit: 3, window: "1 second", store })
 * const uploads = createLimiter({ name: "upload", limit: 10, window: "1 hour", store })
 * ```
 * @throws {@link InvalidOptionError}
 */
export function memoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  const { maxKeys, clock } = parseOptions(options)
  return guardedStore(new InMemory(maxKeys, clock))
}

class InMemory implements MemoryStore {
  readonly isShared = false
  readonly #maxKeys: number
  readonly #clock: Clock
  readonly #listeners = new StoreListeners<EvictionEvent>("the memory store")
  readonly #evictions = new Evictions()
  #table: CounterTable | undefined
  #counters: Counters<KeyHash> | undefined

  constructor(maxKeys: number, clock: Clock) {
    makeStringsQuick()
    this.#maxKeys = maxKeys
    this.#clock = clock
    this.#start()
  }

  /** Starts with an empty table. */
  #start(): void {
    this.#table = new CounterTable(this.#maxKeys, (emptyAfterMs, releaseAfterMs) =>
      this.#evictions.add(emptyAfterMs, releaseAfterMs),
    )
    this.#counters = new Counters(this.#table, keyHasher(), { low: 0, high: 0 })
  }

  get size(): number {
    return this.#table?.size ?? 0
  }

  get evictions(): number {
    return this.#evictions.total
  }

  take(checks: readonly Check[]): StoreResult {
    const counters = this.#open()
    const nowMs = this.#now()
    const result = counters.take(checks, nowMs)
    if (!this.#evictions.isEmpty) this.#report(nowMs)
    return result
  }

  read(checks: readonly Check[]): StoreReading {
    return this.#open().read(checks, this.#now())
  }

  refund(refunds: readonly Refund[]): void {
    this.#open().refund(refunds, this.#now())
  }

  reset(keys: readonly CounterKey[]): void {
    this.#open().reset(keys)
  }

  resetAll(): void {
    this.#open()
    this.#start()
  }

  subscribe(listener: (event: EvictionEvent) => void): () => void {
    this.#open()
    return this.#listeners.add(listener)
  }

  close(): void {
    this.#table = undefined
    this.#counters = undefined
    this.#listeners.clear()
  }

  #open(): Counters<KeyHash> {
    if (this.#counters === undefined) throw new ClosedError("The memory store has been closed.")
    return this.#counters
  }

  #now(): number {
    const nowMs: unknown = this.#clock.now()
    // With NaN as the time, every request would silently be admitted.
    if (!isCountable(nowMs)) {
      throw new StoreUnavailableError(
        `The clock of the memory store returned ${textOf(nowMs)}. Its now() must return epoch milliseconds.`,
      )
    }
    return Math.floor(nowMs)
  }

  /** Emits the events. Call this method after all other work, because a listener may call the store or throw. */
  #report(nowMs: number): void {
    for (const event of this.#evictions.take(nowMs)) this.#listeners.emit(event)
  }
}
