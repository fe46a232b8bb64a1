import { inspect } from "node:util"
import type { CounterState } from "../../algorithms/algorithm.ts"
import { algorithmOf } from "../../algorithms/by-name.ts"
import { chargeable } from "../../algorithms/chargeable.ts"
import { type Clock, LATEST_MS } from "../../clock.ts"
import { ClosedError, StoreUnavailableError, textOf } from "../../errors.ts"
import { ceilingOf } from "../../policy.ts"
import { makeStringsQuick } from "../quick-strings.ts"
import { countsRefusals } from "../refusals.ts"
import type { Answer, Check, CounterKey, EvictionEvent, Refund, Store } from "../store.ts"
import { type Pending, statesAfterRefusal, takeTogether } from "../take-together.ts"
import { CounterTable } from "./counter-table.ts"
import { keepState, markBlocked, stateAt } from "./kept-state.ts"
import { isSameKey, type KeyHash, type KeyHasher, keyHasher } from "./key-hash.ts"
import { type MemoryStoreOptions, parseOptions } from "./options.ts"

export type { MemoryStoreOptions } from "./options.ts"

/** A store in the memory of this process: it answers with values, never with promises. */
export interface MemoryStore extends Store {
  /** Counters kept now, expired ones that have not been swept yet included. */
  readonly size: number
  take(requests: readonly (readonly Check[])[]): readonly Answer[]
  peek(requests: readonly (readonly Check[])[]): readonly Answer[]
  giveBack(refunds: readonly Refund[]): void
  reset(keys: readonly CounterKey[]): void
  subscribe(listener: (event: EvictionEvent) => void): () => void
  close(): void
}

/**
 * Counters in the memory of this process, at most `maxKeys` of them. When it is full it forgets expired counters
 * first, then idle ones, and a client that is being refused last of all, with an event.
 *
 * Every call is atomic: nothing else runs in between. Worker threads and `node:cluster` processes do not share it:
 * each would have a quota of its own.
 * @example
 * ```ts
 * import { createLimiter, memoryStore } from "@sluice/core"
 *
 * // Two limiters that share a store; their rules have different names.
 * const store = memoryStore({ maxKeys: 100_000 }) // some 5 MB when it is full
 * const searches = createLimiter({ name: "search", limit: 3, window: "1 second", store })
 * const uploads = createLimiter({ name: "upload", limit: 10, window: "1 hour", store })
 * ```
 * @throws {@link InvalidOptionError}
 */
export function memoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  const { maxKeys, clock } = parseOptions(options)
  return new InMemory(maxKeys, clock)
}

/**
 * Whether a memory store's own `take` or `peek` is what would answer: it makes sense whatever it is asked. An app or a test may
 * have put something else in its place, at any time; and on any other object those two throw.
 */
// Stryker disable next-line BlockStatement: what always makes sense is looked through in vain
export function answersForItself(store: Store, peeked: boolean): boolean {
  return peeked ? store.peek === OWN_PEEK : store.take === OWN_TAKE
}

/** A check on its way, and where its counter is. */
interface Located extends Pending {
  readonly key: KeyHash
}

class InMemory implements MemoryStore {
  readonly #clock: Clock
  readonly #hash: KeyHasher = keyHasher()
  /** Reused for every counter that is looked at by itself: an allocation less on the hot path. */
  readonly #key: KeyHash = emptyKey()
  readonly #listeners = new Set<(event: EvictionEvent) => void>()
  /** What the listeners are still to be told. */
  #events: EvictionEvent[] = []
  #table: CounterTable | undefined

  constructor(maxKeys: number, clock: Clock) {
    makeStringsQuick()
    this.#clock = clock
    this.#table = new CounterTable(maxKeys, (releaseAfterMs) => {
      this.#events.push({ type: "evicted-blocked", releaseAfterMs })
    })
  }

  get size(): number {
    return this.#table?.size ?? 0
  }

  take(requests: readonly (readonly Check[])[]): readonly Answer[] {
    const table = this.#open()
    const nowMs = this.#now()
    const only = requests[0]
    // Nearly always there is one.
    // Stryker disable next-line ConditionalExpression,EqualityOperator: as a list of one it is answered the same, only slower
    const isOnly = only !== undefined && requests.length === 1
    const answers = isOnly
      ? [this.#takeRequest(table, only, nowMs)]
      : this.#takeRequests(table, requests, nowMs)
    // Stryker disable next-line ConditionalExpression,EqualityOperator: to tell of nothing makes a list in vain
    if (this.#events.length > 0) this.#tell()
    return answers
  }

  peek(requests: readonly (readonly Check[])[]): readonly Answer[] {
    const table = this.#open()
    const nowMs = this.#now()
    return requests.map((checks) => {
      const pending = checks.map((check) => this.#look(table, check, nowMs))
      const granted = takeTogether(pending, nowMs, isSameCounter)
      return {
        nowMs,
        granted,
        checks: checks.map((check) => {
          const { key, algorithm, state } = this.#look(table, check, nowMs)
          keepState(table, key, algorithm, state, check.policy)
          return { state, taken: 0 }
        }),
      }
    })
  }

  giveBack(refunds: readonly Refund[]): void {
    const table = this.#open()
    const nowMs = this.#now()
    for (const { policy, partition, units, after } of refunds) {
      const algorithm = algorithmOf(policy)
      this.#hash(policy.counter, partition, this.#key)
      const state = stateAt(table, this.#key, algorithm, policy, nowMs)
      const left = algorithm.withoutUnits(state, policy, chargeable(state, units), after, nowMs)
      if (left === state) keepState(table, this.#key, algorithm, state, policy)
      else if (left.previous === 0 && left.current === 0) table.remove(this.#key)
      else table.write(this.#key, left, algorithm.emptyAtMs(left, policy), nowMs)
    }
  }

  reset(keys: readonly CounterKey[]): void {
    const table = this.#open()
    for (const { policy, partition } of keys) {
      this.#hash(policy.counter, partition, this.#key)
      table.remove(this.#key)
    }
  }

  subscribe(listener: (event: EvictionEvent) => void): () => void {
    this.#open()
    // A function of its own, so that a listener that is given twice is also stopped twice.
    const subscription = (event: EvictionEvent) => listener(event)
    this.#listeners.add(subscription)
    return () => this.#listeners.delete(subscription)
  }

  close(): void {
    this.#table = undefined
    this.#listeners.clear()
  }

  #takeRequests(
    table: CounterTable,
    requests: readonly (readonly Check[])[],
    nowMs: number,
  ): readonly Answer[] {
    return requests.map((checks) => this.#takeRequest(table, checks, nowMs))
  }

  #takeRequest(table: CounterTable, checks: readonly Check[], nowMs: number): Answer {
    // Stryker disable next-line ConditionalExpression: all of one check are taken as one is, only slower
    const isOne = checks.length === 1
    return isOne ? this.#takeOne(table, checks[0] as Check, nowMs) : this.#takeAll(table, checks, nowMs)
  }

  /** What `#takeAll` does, for the usual request: one check, nothing to take back. */
  #takeOne(table: CounterTable, check: Check, nowMs: number): Answer {
    const { policy, partition, cost, shadow } = check
    const algorithm = algorithmOf(policy)
    this.#hash(policy.counter, partition, this.#key)
    const state = stateAt(table, this.#key, algorithm, policy, nowMs)
    if (cost === 0) {
      keepState(table, this.#key, algorithm, state, policy)
      const next = algorithm.withUnits(state, policy, 0, nowMs)
      return { nowMs, granted: true, checks: [{ state: next, taken: 0 }] }
    }
    if (algorithm.admits(state, policy, cost, nowMs)) {
      const next = algorithm.withUnits(state, policy, cost, nowMs)
      table.write(this.#key, next, algorithm.emptyAtMs(next, policy), nowMs)
      return { nowMs, granted: true, checks: [{ state: next, taken: cost }] }
    }
    keepState(table, this.#key, algorithm, state, policy)
    if (shadow) return { nowMs, granted: true, checks: [{ state, taken: 0 }] }
    let after = state
    if (policy.countRejected === true && cost <= ceilingOf(policy)) {
      after = algorithm.withRejected(state, policy, cost, nowMs)
      // Stryker disable next-line ConditionalExpression: what has not changed, written once more
      if (after !== state) table.write(this.#key, after, algorithm.emptyAtMs(after, policy), nowMs)
    }
    markBlocked(table, this.#key, algorithm, after, check, nowMs)
    return { nowMs, granted: false, checks: [{ state: after, taken: 0 }] }
  }

  #takeAll(table: CounterTable, checks: readonly Check[], nowMs: number): Answer {
    const pending = checks.map((check) => this.#look(table, check, nowMs))
    const before = pending.map(({ state }) => state)
    if (takeTogether(pending, nowMs, isSameCounter)) {
      for (let i = 0; i < pending.length; i++) {
        const { key, algorithm, state, check, taken } = pending[i] as Located
        // A penalty that admits has counted nothing.
        if (taken > 0 && state !== before[i])
          table.write(key, state, algorithm.emptyAtMs(state, check.policy), nowMs)
        else keepState(table, key, algorithm, state, check.policy)
      }
      return { nowMs, granted: true, checks: pending.map(({ state, taken }) => ({ state, taken })) }
    }
    const states = checks.some(countsRefusals)
      ? statesAfterRefusal(pending, before, nowMs, isSameCounter)
      : before
    pending.forEach(({ key, algorithm, check }, i) => {
      const state = states[i] as CounterState
      if (state !== before[i]) table.write(key, state, algorithm.emptyAtMs(state, check.policy), nowMs)
      else keepState(table, key, algorithm, state, check.policy)
      if (!check.shadow) markBlocked(table, key, algorithm, state, check, nowMs)
    })
    return { nowMs, granted: false, checks: states.map((state) => ({ state, taken: 0 })) }
  }

  #look(table: CounterTable, check: Check, nowMs: number): Located {
    const key = emptyKey()
    this.#hash(check.policy.counter, check.partition, key)
    const algorithm = algorithmOf(check.policy)
    return { check, algorithm, key, state: stateAt(table, key, algorithm, check.policy, nowMs), taken: 0 }
  }

  #open(): CounterTable {
    if (this.#table === undefined) throw new ClosedError("The memory store has been closed.")
    return this.#table
  }

  #now(): number {
    const nowMs: unknown = this.#clock.now()
    // A clock that answers NaN would admit everything, silently.
    if (!(typeof nowMs === "number" && nowMs >= 0 && nowMs <= LATEST_MS)) {
      throw new StoreUnavailableError(
        `The clock of the memory store yielded ${textOf(nowMs)}; it must yield epoch milliseconds.`,
      )
    }
    return Math.floor(nowMs)
  }

  /** When the call has done its work: a listener may itself call the store, or throw. */
  #tell(): void {
    const events = this.#events
    this.#events = []
    for (const event of events) {
      for (const listener of this.#listeners) {
        try {
          listener(event)
        } catch (error) {
          process.emitWarning(`A listener of the memory store threw: ${inspect(error)}`)
        }
      }
    }
  }
}

const { take: OWN_TAKE, peek: OWN_PEEK } = InMemory.prototype

/** To be written by the hasher, and of its shape from the start. */
function emptyKey(): KeyHash {
  // Stryker disable next-line ObjectLiteral: both words are written before they are read
  return { low: 0, high: 0 }
}

function isSameCounter({ key: one }: Located, { key: other }: Located): boolean {
  return isSameKey(one, other)
}
