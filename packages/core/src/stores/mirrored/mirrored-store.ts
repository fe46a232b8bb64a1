import { StoreUnavailableError, sentenceOf } from "../../ground/errors.ts"
import { isThenable, type MaybePromise } from "../../ground/maybe-promise.ts"
import type { Policy } from "../../ground/policy.ts"
import { beforeDeadline } from "../../ground/time.ts"
import { CHARGE_MS, Charger } from "../in-front/charger.ts"
import { Charges } from "../in-front/charges.ts"
import { StoreWrapper } from "../in-front/store-wrapper.ts"
import { Sweep } from "../in-front/sweep.ts"
import type { Check, CounterKey, Refund, Store, StoreEvent, StoreResult } from "../store.ts"
import { storeErrorOf, withinDeadline } from "../store-error.ts"
import { type MirroredStoreOptions, type ParsedMirroredOptions, parseOptions } from "./options.ts"

export type { MirroredStoreOptions } from "./options.ts"

/**
 * Creates a store that shares limits between data centers, each of which has its own store. The near store decides
 * alone, so no request waits for another data center. Every `everyMs`, the admitted units are charged to the far
 * stores, even above the limit. Each data center does the same, so all of them count what all of them admit.
 *
 * A data center does not know what the others have admitted in the last `everyMs` and the time of a call. In any window
 * of length W, at most the worst case of the rule's algorithm and these units are admitted. While data centers cannot
 * reach each other, each of them admits the whole limit. The counts agree again two windows after that.
 *
 * Refusals that count (`countRejected`, `penalty`) count in this data center alone. `Limiter.reset`, `block` and
 * `unblock` apply to all data centers, and wait for up to a second for the far ones.
 *
 * `close` charges what is outstanding, and then closes all stores.
 * @example
 * ```ts
 * import { createLimiter, mirroredStore } from "@sluice/core"
 * import { redisStore } from "@sluice/core/redis"
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

/** The store of another data center. */
interface Mirror {
  readonly name: string
  readonly store: Store
  readonly charger: Charger
}

/** The implementation of `mirroredStore`. */
class MirroredStore extends StoreWrapper {
  readonly #options: ParsedMirroredOptions
  readonly #mirrors: readonly Mirror[]
  readonly #charges = new Charges()
  readonly #sweep: Sweep
  /** Charges in flight. */
  readonly #sending = new Set<Promise<unknown>>()
  /** Resets that have not ended. */
  #resets = 0

  constructor(options: ParsedMirroredOptions) {
    super("mirrored store", options.near)
    const { clock, everyMs, far } = options
    this.#options = options
    this.#sweep = new Sweep(clock, everyMs, () => this.#send())
    this.#mirrors = Object.entries(far).map(([name, store]) => ({
      name,
      store,
      charger: new Charger(store, clock, titleOf(name), (event) => this.listeners.emit(event)),
    }))
  }

  override get mirrors(): Store["mirrors"] {
    return Object.fromEntries(this.#mirrors.map(({ name, charger }) => [name, charger.counts]))
  }

  take(requests: readonly (readonly Check[])[], withinMs?: number): MaybePromise<readonly StoreResult[]> {
    this.checkOpen()
    const answers = this.wrapped.take(requests, withinMs)
    if (!isThenable(answers)) return this.#collected(requests, answers)
    return Promise.resolve(answers).then((answered) => this.#collected(requests, answered))
  }

  peek(requests: readonly (readonly Check[])[], withinMs?: number): MaybePromise<readonly StoreResult[]> {
    this.checkOpen()
    return this.wrapped.peek(requests, withinMs)
  }

  /** Refunds units in this data center now, and in the others with the next charges. Blocks apply everywhere at once. */
  async refund(refunds: readonly Refund[], withinMs?: number): Promise<void> {
    this.checkOpen()
    const blocks = refunds.filter(
      ({ policy, units }) => units < 0 && policy.algorithm === "penalty" && this.#isMirrored(policy),
    )
    const near = this.wrapped.refund(refunds, withinMs)
    if (blocks.length === 0) await near
    else await this.#everywhere(near, (store) => store.refund(blocks, CHARGE_MS))
    for (const refund of refunds) this.#collect(refund, -refund.units, refund.after)
  }

  async reset(keys: readonly CounterKey[], withinMs?: number): Promise<void> {
    this.checkOpen()
    const mirrored = keys.filter(({ policy }) => this.#isMirrored(policy))
    if (mirrored.length === 0) return this.wrapped.reset(keys, withinMs)
    this.#resets++
    try {
      // Charges that arrive after the reset would count again. No charges are sent during the reset.
      await beforeDeadline(Promise.all(this.#sending), CHARGE_MS, () => undefined)
      for (const key of mirrored) this.#charges.take(key)
      const near = this.wrapped.reset(keys, withinMs)
      await this.#everywhere(near, (store) => store.reset(mirrored, CHARGE_MS))
    } finally {
      this.#resets--
      if (!this.#charges.isEmpty) this.#plan()
    }
  }

  /** Subscribes to the events of all stores. */
  override subscribe(listener: (event: StoreEvent) => void): () => void {
    const stops = [
      super.subscribe(listener),
      ...this.#mirrors.map(({ store }) => store.subscribe?.(listener)),
    ]
    return () => {
      for (const stop of stops) stop?.()
    }
  }

  protected async end(): Promise<void> {
    await this.wrapped.close()
    // Closing the near store has answered what was in flight.
    this.#sweep.stop()
    // A reset that is still in flight must not hold back the last charges.
    this.#resets = 0
    this.#send()
    await Promise.all(this.#sending)
    await Promise.all(this.#mirrors.map(({ store }) => store.close()))
  }

  #collected(
    requests: readonly (readonly Check[])[],
    answers: readonly StoreResult[],
  ): readonly StoreResult[] {
    for (let i = 0; i < requests.length; i++) {
      // A custom store may answer with anything. The limiter reports an invalid answer.
      const counts = (answers as Partial<typeof answers> | undefined)?.[i]?.checks
      const checks = requests[i] as readonly Check[]
      for (let j = 0; j < checks.length; j++) {
        const counted = counts?.[j]
        if (counted !== undefined && counted.taken > 0) {
          this.#collect(checks[j] as Check, counted.taken, counted.after ?? counted.state)
        }
      }
    }
    return answers
  }

  /** The policy without a name marks that clients are blocked. It belongs to all rules. */
  #isMirrored({ name }: Policy): boolean {
    return name === "" || this.#options.rules(name)
  }

  #collect(key: CounterKey, units: number, after: Refund["after"]): void {
    if (units === 0 || key.policy.algorithm === "penalty" || !this.#isMirrored(key.policy)) return
    if (this.#charges.isEmpty) this.#plan()
    this.#charges.add(key, units, after)
  }

  #plan(): void {
    const { clock, everyMs } = this.#options
    const nowMs = clock.now()
    this.#sweep.plan(nowMs + everyMs, nowMs)
  }

  #send(): void {
    if (this.#resets > 0) return
    const charges = this.#charges.takeAll()
    if (charges.length === 0) return
    for (const { charger } of this.#mirrors) {
      const sent = charger.charge(charges).finally(() => this.#sending.delete(sent))
      this.#sending.add(sent)
    }
  }

  /** Waits for a call of the near store and the same call of each far store. Rejects if any of them fails. */
  async #everywhere(near: MaybePromise<void>, call: (store: Store) => MaybePromise<void>): Promise<void> {
    const far = this.#mirrors.map(async ({ name, store }) => {
      const timeoutMs = store.keepsDeadline === true ? undefined : CHARGE_MS
      try {
        await withinDeadline(Promise.resolve(call(store)), timeoutMs)
      } catch (error) {
        const { kind, message } = storeErrorOf(error)
        const text = `${titleOf(name)} did not confirm: ${sentenceOf(message)} Other data centers may have.`
        throw new StoreUnavailableError(text, { kind, outcome: "unknown", cause: error })
      }
    })
    const settled = await Promise.allSettled([near, ...far])
    const failed = settled.find((one) => one.status === "rejected")
    if (failed !== undefined) throw failed.reason
  }
}

function titleOf(name: string): string {
  return `The data center "${name}"`
}
