import type { Store } from "@sluice/core"
import { beforeDeadline, type MaybePromise } from "@sluice/core/kit"
import {
  type Check,
  type CounterKey,
  type CounterState,
  type Policy,
  type Refund,
  releases,
  type StoreReading,
  type StoreResult,
  type StoreStatus,
} from "@sluice/core/stores"
import { CallsInFlight } from "../in-front/calls.ts"
import { CHARGE_MS } from "../in-front/charger.ts"
import { StoreWrapper } from "../in-front/store-wrapper.ts"
import { Mirror } from "./mirror.ts"
import { type MirroredStoreOptions, type ParsedMirroredOptions, parseOptions } from "./options.ts"

export type { MirroredStoreOptions } from "./options.ts"

/**
 * Creates a store that shares limits between data centers, each of which has its own store. The near store decides
 * alone, so no request waits for another data center. Every `everyMs`, the admitted units are charged to the far
 * stores, even above the limit. Each data center does the same, so every data center counts all admitted units.
 *
 * A data center does not yet know the units that others have admitted within `everyMs` plus the time of a call. In
 * any window, at most the worst case of the rule's algorithm plus these units are admitted. While data centers cannot
 * reach each other, each of them admits the whole limit. Their counts agree again two windows after the connection
 * returns.
 *
 * Refusals that count (`countRejected`, `penalty`) and permits (`concurrent`) count only in this data center. So each
 * data center admits as many requests at a time as the rule says. `Limiter.reset`, `block` and `unblock` apply to all
 * data centers, and wait up to a second for the far stores.
 *
 * `close` charges the pending units, and then closes all stores.
 * @example
 * ```ts
 * import { createLimiter } from "@sluice/core"
 * import { mirroredStore } from "@sluice/scale"
 * import { redisStore } from "@sluice/redis"
 * import { Redis } from "ioredis"
 *
 * const near = new Redis(process.env.REDIS_URL ?? "redis://localhost:6379")
 * const eu = new Redis(process.env.REDIS_URL_EU ?? "redis://redis.eu.example.com")
 * const store = mirroredStore({ near: redisStore({ client: near }), far: { eu: redisStore({ client: eu }) } })
 * const limiter = createLimiter({ service: "checkout", limit: 100, window: "1 minute", field: "user_id", store })
 * ```
 * @throws {@link InvalidOptionError} if an option is invalid, or a store is given twice or is not shared
 */
export function mirroredStore(options: MirroredStoreOptions): Store {
  return new MirroredStore(parseOptions(options))
}

/** The implementation of `mirroredStore`. */
class MirroredStore extends StoreWrapper {
  readonly #rules: (name: string) => boolean
  readonly #mirrors: readonly Mirror[]
  /** Refunds in flight. The units that they return are also refunded in the other data centers. */
  readonly #refunds = new CallsInFlight()

  constructor(options: ParsedMirroredOptions) {
    super("mirrored store", options.near)
    this.#rules = options.rules
    this.#mirrors = Object.entries(options.far).map(
      ([name, store]) => new Mirror(name, store, options, (event) => this.listeners.emit(event)),
    )
  }

  override get status(): StoreStatus {
    const mirrors = Object.fromEntries(this.#mirrors.map(({ name, counts }) => [name, counts]))
    return { ...super.status, mirrors }
  }

  take(checks: readonly Check[], withinMs?: number): MaybePromise<StoreResult> {
    this.checkOpen()
    const result = this.wrapped.take(checks, withinMs)
    return result instanceof Promise
      ? result.then((taken) => this.#collected(checks, taken))
      : this.#collected(checks, result)
  }

  read(checks: readonly Check[], withinMs?: number): MaybePromise<StoreReading> {
    this.checkOpen()
    return this.wrapped.read(checks, withinMs)
  }

  /**
   * Refunds units in this data center now, and in other data centers with the next charges. Blocks and granted units apply
   * everywhere immediately.
   */
  refund(refunds: readonly Refund[], withinMs?: number): Promise<void> {
    this.checkOpen()
    const refunded = this.#refund(refunds, withinMs)
    this.#refunds.add(refunded)
    return refunded
  }

  async #refund(refunds: readonly Refund[], withinMs: number | undefined): Promise<void> {
    const ofOperator = refunds.filter(
      ({ policy, units }) => isOfOperator(policy, units) && this.#isMirrored(policy),
    )
    const near = this.wrapped.refund(refunds, withinMs)
    if (ofOperator.length === 0) await near
    else await all([near, ...this.#mirrors.map((mirror) => mirror.applyNow(ofOperator))])
    for (const refund of refunds) this.#collect(refund, -refund.units, refund.after)
  }

  async reset(keys: readonly CounterKey[], withinMs?: number): Promise<void> {
    this.checkOpen()
    const mirrored = keys.filter(({ policy }) => this.#isMirrored(policy))
    const near = Promise.resolve(this.wrapped.reset(keys, withinMs))
    if (mirrored.length === 0) await near
    else await all([near, ...this.#mirrors.map((mirror) => mirror.reset(mirrored, near))])
  }

  protected override get sources(): readonly Store[] {
    return [this.wrapped, ...this.#mirrors.map(({ store }) => store)]
  }

  protected async end(): Promise<void> {
    await beforeDeadline(this.#refunds.settled(), CHARGE_MS, () => undefined)
    try {
      await this.wrapped.close()
    } finally {
      await all(this.#mirrors.map((mirror) => mirror.close()))
    }
  }

  #collected(checks: readonly Check[], result: StoreResult): StoreResult {
    for (let i = 0; i < checks.length; i++) {
      const counted = result.checks[i]
      if (counted === undefined || counted.taken === 0) continue
      this.#collect(checks[i] as Check, counted.taken, counted.after ?? counted.state)
    }
    return result
  }

  #collect(key: CounterKey, units: number, after: CounterState): void {
    const isLocal = ["penalty", "grant"].includes(key.policy.algorithm) || releases(key.policy)
    if (units === 0 || isLocal || !this.#isMirrored(key.policy)) return
    for (const mirror of this.#mirrors) mirror.add(key, units, after)
  }

  /** True if a policy's counters are mirrored. The marker of blocked clients has no name, and is always mirrored. */
  #isMirrored({ name }: Policy): boolean {
    return name === "" || this.#rules(name)
  }
}

/** True if a refund is a call of an operator: a block or a grant. */
function isOfOperator({ algorithm }: Policy, units: number): boolean {
  return algorithm === "grant" || (algorithm === "penalty" && units < 0)
}

/** Waits until all calls have ended, and then rejects with the first error. */
async function all(works: readonly MaybePromise<void>[]): Promise<void> {
  const ended = await Promise.allSettled(works)
  const failed = ended.find((one) => one.status === "rejected")
  if (failed !== undefined) throw failed.reason
}
