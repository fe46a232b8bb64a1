import type { Store } from "@sluice/core"
import { beforeDeadline, type MaybePromise } from "@sluice/core/kit"
import {
  BACKGROUND_REFUND_MS,
  type Check,
  type CounterKey,
  type Refund,
  type StoreReading,
  type StoreResult,
  type StoreStatus,
} from "@sluice/core/stores"
import { StoreWrapper } from "../in-front/store-wrapper.ts"
import { type ParsedWriteBackOptions, parseOptions, type WriteBackStoreOptions } from "./options.ts"
import { OwnChecks } from "./own-checks.ts"
import { WriteBacks } from "./write-backs.ts"

export type { WriteBackStoreOptions } from "./options.ts"

/**
 * Creates a store in front of a store that processes share. No request waits for the shared store: this process decides
 * by the count that it last knew and by its own units. It charges those units to the shared store after `settleMs`, and
 * then learns what other processes have used.
 *
 * A client that always reaches the same process is counted exactly. For others, the guide "Scale" gives the bound. Units
 * above the limit are worked off later. A process that is killed forgets what it has not charged yet.
 *
 * `sliding-log`, `leaky-bucket`, and rules with `countRejected` or a `penalty` are passed on to the shared store. A
 * request that has both kinds of rules waits for the shared store. It takes the units of all its rules, or nothing.
 *
 * While the shared store does not answer, each process first admits what it last knew to be left. In each later window,
 * it admits the limit, or its share of it. After three failed settlements, or 1.2 seconds without an answer, its decisions
 * are `degraded`. `close` charges what is pending, and then closes the shared store.
 * @example
 * ```ts
 * import { createLimiter } from "@sluice/core"
 * import { writeBackStore } from "@sluice/scale"
 * import { redisStore } from "@sluice/redis"
 * import { Redis } from "ioredis"
 *
 * const client = new Redis(process.env.REDIS_URL ?? "redis://localhost:6379")
 * const store = writeBackStore(redisStore({ client }))
 * const limiter = createLimiter({ service: "checkout", limit: 100, window: "1 minute", store })
 * ```
 * @throws {@link InvalidOptionError} if an option is invalid, or the store is not shared or already written back
 */
export function writeBackStore(store: Store, options: WriteBackStoreOptions = {}): Store {
  return new WriteBackStore(store, parseOptions(store, options))
}

/** The implementation of `writeBackStore`. */
class WriteBackStore extends StoreWrapper {
  readonly #backs: WriteBacks

  constructor(store: Store, options: ParsedWriteBackOptions) {
    super("write-back store", store)
    this.#backs = new WriteBacks(this.wrapped, options, (event) => this.listeners.emit(event))
  }

  override get status(): StoreStatus {
    return { ...super.status, writeBack: this.#backs.counts }
  }

  take(checks: readonly Check[], withinMs?: number): MaybePromise<StoreResult> {
    this.checkOpen()
    const nowMs = this.#backs.nowMs()
    const own = new OwnChecks(checks, this.#backs.of(checks, nowMs), nowMs)
    return own.isEmpty ? this.wrapped.take(checks, withinMs) : this.#takeOwn(own, withinMs)
  }

  read(checks: readonly Check[], withinMs?: number): MaybePromise<StoreReading> {
    this.checkOpen()
    const { condition } = this.#backs
    const own = new OwnChecks(checks, this.#backs.active(checks), this.#backs.nowMs())
    if (own.isWhole) return own.read(undefined, condition)
    const rest = this.wrapped.read(own.rest, withinMs)
    return rest instanceof Promise
      ? rest.then((reading) => own.read(reading, condition))
      : own.read(rest, condition)
  }

  refund(refunds: readonly Refund[], withinMs?: number): MaybePromise<void> {
    this.checkOpen()
    const rest = refunds.filter((refund) => !this.#backs.refund(refund))
    return this.refundRest(rest, refunds, withinMs)
  }

  async reset(keys: readonly CounterKey[], withinMs?: number): Promise<void> {
    this.checkOpen()
    const dropped = this.#backs.drop(keys)
    try {
      await this.resetWrapped(keys, this.#backs.inFlight, withinMs)
    } catch (error) {
      this.#backs.restore(dropped)
      throw error
    }
    // Units may have been taken while the store deleted the counters.
    this.#backs.drop(keys)
  }

  protected async end(): Promise<void> {
    await beforeDeadline(this.#backs.close(), BACKGROUND_REFUND_MS, () => undefined)
    await this.wrapped.close()
  }

  #takeOwn(own: OwnChecks, withinMs: number | undefined): MaybePromise<StoreResult> {
    const { charges, inFlight, condition } = this.#backs
    if (!own.take(charges)) return own.refused(condition)
    if (own.isWhole) return own.answer(true, condition)
    const putBack = (error: unknown): never => {
      this.#backs.putBack(own)
      throw error
    }
    let answer: MaybePromise<StoreResult>
    try {
      answer = this.wrapped.take(own.rest, withinMs)
    } catch (error) {
      return putBack(error)
    }
    if (!(answer instanceof Promise)) return this.#answered(own, answer)
    const whole = answer.then((answered) => this.#answered(own, answered), putBack)
    inFlight.add(whole)
    return whole
  }

  /** Returns the answer to the whole request, and returns the own units if the shared store refuses. */
  #answered(own: OwnChecks, answer: StoreResult): StoreResult {
    if (!answer.granted) this.#backs.putBack(own)
    return own.whole(answer, this.#backs.condition)
  }
}
