import { ClosedError, StoreUnavailableError } from "../../ground/errors.ts"
import { isThenable, type MaybePromise } from "../../ground/maybe-promise.ts"
import { requireNone } from "../../ground/option-checks.ts"
import { Counters } from "../counters.ts"
import type { Check, CounterKey, Refund, Store, StoreReading, StoreResult } from "../store.ts"
import type { CounterBackend } from "./counter-backend.ts"
import { Transaction, textKey, wholeMs } from "./transaction.ts"

/**
 * Creates a store on a back end with transactions, for apps that have a database but not Redis. The store supports
 * all algorithms, several rules per request, and refunds. The back end only reads and writes counters. Each call,
 * such as a decision, is one transaction.
 *
 * The store does not apply a timeout. The limiter refunds the units of a decision that ends after its timeout.
 * @example
 * ```ts
 * import { createLimiter } from "@sluice/core"
 * import { type KeptCounter, transactionalStore } from "@sluice/core/stores"
 *
 * const kept = new Map<string, KeptCounter>() // a table of yours
 * const store = transactionalStore({
 *   transact(keys, change) {
 *     for (const { key, counter } of change(keys.map((key) => kept.get(key)), Date.now())) {
 *       if (counter === undefined) kept.delete(key)
 *       else kept.set(key, counter)
 *     }
 *   },
 * })
 * const limiter = createLimiter({ limit: 100, window: "1 minute", service: "shop", store })
 * ```
 * @throws {@link InvalidOptionError}
 */
export function transactionalStore(backend: CounterBackend): Store {
  if (typeof backend?.transact !== "function") {
    const accepted = "an object with transact(keys, change)"
    requireNone([{ path: "", message: "the back end has no method transact()", accepted }])
  }
  const { isShared = true, close } = backend
  if (typeof isShared !== "boolean") {
    requireNone([{ path: "isShared", message: "is not a boolean", accepted: "true or false" }])
  }
  if (close !== undefined && typeof close !== "function") {
    requireNone([{ path: "close", message: "is not a function", accepted: "a function, or undefined" }])
  }
  return new TransactionalStore(backend)
}

class TransactionalStore implements Store {
  readonly isShared: boolean
  readonly #backend: CounterBackend
  #closed = false

  constructor(backend: CounterBackend) {
    this.isShared = backend.isShared ?? true
    this.#backend = backend
  }

  take(checks: readonly Check[], withinMs?: number): MaybePromise<StoreResult> {
    return this.#transact(checks, withinMs, (counters, nowMs) => counters.take(checks, nowMs))
  }

  read(checks: readonly Check[], withinMs?: number): MaybePromise<StoreReading> {
    return this.#transact(checks, withinMs, (counters, nowMs) => counters.read(checks, nowMs))
  }

  refund(refunds: readonly Refund[], withinMs?: number): MaybePromise<void> {
    return this.#transact(refunds, withinMs, (counters, nowMs) => counters.refund(refunds, nowMs))
  }

  reset(keys: readonly CounterKey[], withinMs?: number): MaybePromise<void> {
    return this.#transact(keys, withinMs, (counters) => counters.reset(keys))
  }

  close(): MaybePromise<void> {
    if (this.#closed) return
    this.#closed = true
    return this.#backend.close?.()
  }

  #transact<Result>(
    counted: readonly CounterKey[],
    withinMs: number | undefined,
    work: (counters: Counters<string>, nowMs: number) => Result,
  ): MaybePromise<Result> {
    if (this.#closed) throw new ClosedError("The store has been closed.")
    const texts = counted.map(({ policy, partition }) => textKey(policy.counter, partition))
    const keys = [...new Set(texts)].sort()
    let results: readonly Result[] = []
    const done = this.#backend.transact(
      keys,
      (found, toldMs) => {
        const nowMs = wholeMs(toldMs)
        const transaction = new Transaction(keys, found, nowMs)
        results = [work(new Counters(transaction, textKey), nowMs)]
        return transaction.changes
      },
      withinMs,
    )
    const result = (): Result => {
      if (results.length === 1) return results[0] as Result
      const message = "The back end of the store finished transact() without calling change()."
      throw new StoreUnavailableError(message, { kind: "invalid-answer" })
    }
    return isThenable(done) ? Promise.resolve(done).then(result) : result()
  }
}
