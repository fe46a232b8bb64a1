import { ClosedError, type Store } from "@sluice/core"
import type { MaybePromise } from "@sluice/core/kit"
import {
  BACKGROUND_REFUND_MS,
  type Check,
  type CounterKey,
  guardedStore,
  type Refund,
  refundsOf,
  type StoreEvent,
  StoreListeners,
  type StoreReading,
  type StoreResult,
  type StoreStatus,
} from "@sluice/core/stores"
import type { BatchListener } from "./batching/batch-sender.ts"
import { DenyCache } from "./deny-cache.ts"
import { allApplied, failureOf, noCounter, shownKey } from "./failure.ts"
import { keyNamer } from "./key.ts"
import type { ReplyArrival } from "./node/arrivals.ts"
import type { CallTimeout, Node } from "./node/node.ts"
import { type ParsedRedisOptions, parseOptions, type RedisStoreOptions } from "./options.ts"
import { MOST_READ, type ReadCounter, readingOf } from "./reading.ts"
import { RefundBatcher } from "./refund-batcher.ts"
import { checkCountable, PolicyTable, type RedisRequest, WholeRequest } from "./scripts/script-input.ts"
import { integerAt, stateAt } from "./scripts/script-reply.ts"
import { PEEK } from "./scripts.ts"
import { takeInTurn } from "./take-in-turn.ts"
import { patienceClassOf, RedisTopology } from "./topology.ts"

export type { RedisStoreOptions } from "./options.ts"

/**
 * Creates a store that keeps counters in Redis. All processes that use the same server or cluster with the same
 * prefix share these counters. The store uses the server's time.
 *
 * One script call decides all checks of a request, atomically. In a cluster, checks in different slots are decided
 * one slot after the other, and their units are refunded if a later slot refuses. If the first slot refuses, the
 * store makes no further call. Requests that arrive while calls are in flight share the next call. When Redis is
 * unavailable, every method rejects by the deadline. After a few such failures, methods reject immediately.
 * @example
 * ```ts
 * import { createLimiter } from "@sluice/core"
 * import { redisStore } from "@sluice/redis"
 * import { Redis } from "ioredis"
 *
 * const client = new Redis(process.env.REDIS_URL ?? "redis://localhost:6379")
 * const store = redisStore({ client })
 * const limiter = createLimiter({ service: "checkout", limit: 100, window: "1 minute", store })
 * ```
 * @throws {@link InvalidOptionError}
 */
export function redisStore(options: RedisStoreOptions): Store {
  return new RedisStore(parseOptions(options))
}

/** The parsed options of a store, and how it writes values. */
export interface RedisStoreParts extends ParsedRedisOptions {
  /**
   * True if stored values contain their full window start. By default, true with a given clock, because keys do not
   * expire by that clock.
   */
  readonly isWide?: boolean
}

/** The implementation of `redisStore`. */
export class RedisStore implements Store {
  readonly isShared = true
  readonly #parts: RedisStoreParts
  readonly #topology: RedisTopology
  readonly #denied: DenyCache
  readonly #nameKey: (counter: CounterKey) => string
  /** Refund batchers by timeout class and slot. */
  readonly #refundBatchers = new Map<string, RefundBatcher>()
  readonly #listeners = new StoreListeners<StoreEvent>("the Redis store")
  #isClosed = false

  constructor(parts: RedisStoreParts) {
    const { commands, clock, isWide = clock !== undefined } = parts
    const timekeeping = { clock, isWide }
    guardedStore<Store>(this)
    this.#parts = parts
    this.#denied = new DenyCache(parts.denyCacheMs)
    this.#nameKey = keyNamer(parts.prefix)
    const listener: BatchListener = {
      answered: (asked, answer, arrival) => this.#learn(asked, answer, arrival),
      lost: ({ checks }) => this.#denied.forget(checks),
      grantedLate: (late) =>
        this.#refundInBackground(late.flatMap(({ asked, answer }) => refundsOf(asked.checks, answer.checks))),
    }
    this.#topology = new RedisTopology(commands, timekeeping, listener, (warning) => {
      this.#listeners.emit(warning)
    })
  }

  get status(): StoreStatus {
    const { openBreakers, recentRoundTripsMs } = this.#topology
    return { openBreakers, recentRoundTripsMs }
  }

  take(checks: readonly Check[], withinMs: number = this.#parts.timeoutMs): MaybePromise<StoreResult> {
    this.#checkOpen()
    if (checks.length === 0) return { ...this.#readNothing(), granted: true, checks: [] }
    // Validate before batching, so that one invalid check cannot make the whole batch fail.
    for (const check of checks) checkCountable(check)
    const asked = new WholeRequest(checks, this.#nameKey)
    if (this.#topology.areTogether(asked)) return this.#takeTogether(asked, withinMs)
    const deadlineMs = performance.now() + withinMs
    return takeInTurn(asked, (key) => this.#topology.slotOf(key), {
      take: (part) => this.#takeTogether(part, deadlineMs - performance.now()),
      refund: (refunds) => this.#refundInBackground(refunds),
    })
  }

  async read(checks: readonly Check[], withinMs: number = this.#parts.timeoutMs): Promise<StoreReading> {
    this.#checkOpen()
    if (checks.length === 0) return { ...this.#readNothing(), counters: [] }
    return readingOf(checks, await this.#statesOf(checks, withinMs))
  }

  async refund(refunds: readonly Refund[], withinMs: number = this.#parts.timeoutMs): Promise<void> {
    this.#checkOpen()
    await this.#refund(refunds, withinMs, false)
  }

  async #refund(refunds: readonly Refund[], withinMs: number, isOwn: boolean): Promise<void> {
    await this.#change(refunds, async (some, keys, node) => {
      const patience = { withinMs, inBackground: isOwn || node.outlastsDecisions(withinMs) }
      await this.#batcherOf(keys[0] as string, patience).add(some, keys, patience)
    })
  }

  /**
   * Refunds units that no caller received. Emits an event if the refund fails, because no caller waits for an error.
   */
  #refundInBackground(refunds: readonly Refund[]): void {
    if (this.#isClosed) return
    // If the first slot of a cluster refuses, there is nothing to refund.
    if (refunds.length === 0) return
    this.#refund(refunds, BACKGROUND_REFUND_MS, true).catch((error: unknown) => {
      this.#listeners.emit({ type: "refund-lost", error: failureOf(error) })
    })
  }

  #batcherOf(key: string, { withinMs, inBackground }: Required<CallTimeout>): RefundBatcher {
    const name = `${inBackground} ${patienceClassOf(withinMs)} ${this.#topology.slotOf(key)}`
    let batcher = this.#refundBatchers.get(name)
    if (batcher === undefined) {
      batcher = new RefundBatcher(() => this.#topology.nodeOf(key), inBackground)
      if (this.#parts.commands.isPerRequest !== true) this.#refundBatchers.set(name, batcher)
    }
    return batcher
  }

  async reset(keys: readonly CounterKey[], withinMs: number = this.#parts.timeoutMs): Promise<void> {
    this.#checkOpen()
    await this.#change(keys, (_some, names, node) => node.forget(names, withinMs))
  }

  subscribe(listener: (event: StoreEvent) => void): () => void {
    this.#checkOpen()
    return this.#listeners.add(listener)
  }

  close(): void {
    this.#isClosed = true
    this.#topology.close(closed())
    this.#denied.clear()
    this.#listeners.clear()
  }

  /** Takes the units of all checks in one call, unless the deny cache can refuse the request. */
  #takeTogether(asked: RedisRequest, withinMs: number): MaybePromise<StoreResult> {
    const { checks } = asked
    if (!this.#denied.isEmpty) {
      const denied = this.#denied.answer(checks, this.#parts.clock?.now() ?? performance.now())
      if (denied !== undefined) return denied
    }
    return this.#topology.senderOf(asked, withinMs).take(asked, withinMs)
  }

  readonly #keyOf = (counter: CounterKey): string => {
    checkCountable(counter)
    return this.#nameKey(counter)
  }

  /** Returns the time for the result of a request without checks, which does not need Redis. */
  #readNothing(): { readonly nowMs: number } {
    return { nowMs: Math.floor(this.#parts.clock?.now() ?? Date.now()) }
  }

  /** Reads the counters of the checks. One call reads up to 64 counters of a slot. */
  async #statesOf(checks: readonly Check[], withinMs: number): Promise<ReadonlyMap<Check, ReadCounter>> {
    // Map by check, because several checks may read the same counter under different limits.
    const found = new Map<Check, ReadCounter>()
    const read = async (some: readonly Check[], keys: readonly string[], node: Node): Promise<void> => {
      const policies = new PolicyTable()
      const numbers = some.map(({ policy }) => policies.numberOf(policy))
      const patience = { withinMs, inBackground: node.outlastsDecisions(withinMs) }
      const reply = await node.ask(PEEK, keys, policies, numbers, patience)
      const nowMs = integerAt(reply, 0)
      some.forEach((check, i) => {
        const state = stateAt(reply, i + 1, check.policy, nowMs)
        if (state === undefined) throw noCounter(shownKey(keys[i] as string))
        found.set(check, { state, nowMs })
      })
    }
    const reading = this.#topology.eachSender(checks, this.#keyOf, async (some, keys, node) => {
      const parts: Promise<void>[] = []
      for (let from = 0; from < some.length; from += MOST_READ) {
        const to = from + MOST_READ
        parts.push(read(some.slice(from, to), keys.slice(from, to), node))
      }
      await Promise.all(parts)
    })
    await Promise.all(reading)
    return found
  }

  /**
   * Refunds or resets counters. The deny cache forgets these counters before and after the change, because a reply
   * during the change may add them again.
   */
  async #change<One extends CounterKey>(
    all: readonly One[],
    work: (some: readonly One[], keys: readonly string[], node: Node) => Promise<void>,
  ): Promise<void> {
    this.#denied.forget(all)
    try {
      await allApplied(this.#topology.eachSender(all, this.#keyOf, work))
    } finally {
      this.#denied.forget(all)
    }
  }

  #learn({ checks }: RedisRequest, answer: StoreResult, arrival: ReplyArrival): void {
    const { nowMs, granted } = answer
    if (granted && this.#denied.isEmpty) return
    if (arrival.isOvertaken) this.#denied.forget(checks)
    else if (this.#parts.clock === undefined) this.#denied.learn(checks, answer, arrival)
    else this.#denied.learn(checks, answer, { sentAtMs: nowMs, answeredAtMs: nowMs })
  }

  #checkOpen(): void {
    if (this.#isClosed) throw closed()
  }
}

function closed(): ClosedError {
  return new ClosedError("The Redis store has been closed.")
}
