import { ClosedError } from "../../ground/errors.ts"
import type { MaybePromise } from "../../ground/maybe-promise.ts"
import type { Check, CounterKey, LeaseCounts, Refund, Store, StoreEvent, StoreResult } from "../store.ts"
import { StoreListeners } from "../store-listeners.ts"

/** A store in front of another store that processes share. It reports the condition and the events of that store. */
export abstract class StoreWrapper implements Store {
  readonly isShared = true
  protected readonly wrapped: Store
  protected readonly listeners: StoreListeners<StoreEvent>
  readonly #title: string
  #closed: Promise<void> | undefined

  /** `title` names this store in messages: "leased store". */
  constructor(title: string, wrapped: Store) {
    this.#title = title
    this.wrapped = wrapped
    this.listeners = new StoreListeners(`the ${title}`)
  }

  get keepsDeadline(): boolean | undefined {
    return this.wrapped.keepsDeadline
  }

  get openBreakers(): number | undefined {
    return this.wrapped.openBreakers
  }

  get recentRoundTripsMs(): readonly number[] | undefined {
    return this.wrapped.recentRoundTripsMs
  }

  get leases(): LeaseCounts | undefined {
    return this.wrapped.leases
  }

  get mirrors(): Store["mirrors"] {
    return this.wrapped.mirrors
  }

  get writeBack(): Store["writeBack"] {
    return this.wrapped.writeBack
  }

  abstract take(
    requests: readonly (readonly Check[])[],
    withinMs?: number,
  ): MaybePromise<readonly StoreResult[]>

  abstract peek(
    requests: readonly (readonly Check[])[],
    withinMs?: number,
  ): MaybePromise<readonly StoreResult[]>

  abstract refund(refunds: readonly Refund[], withinMs?: number): MaybePromise<void>

  abstract reset(keys: readonly CounterKey[], withinMs?: number): MaybePromise<void>

  /** Subscribes to the events of this store and of the wrapped store. */
  subscribe(listener: (event: StoreEvent) => void): () => void {
    this.checkOpen()
    const stops = [this.listeners.add(listener), this.wrapped.subscribe?.(listener)]
    return () => {
      for (const stop of stops) stop?.()
    }
  }

  close(): Promise<void> {
    this.#closed ??= this.end().finally(() => this.listeners.clear())
    return this.#closed
  }

  /** Finishes what is outstanding, and closes the wrapped store. */
  protected abstract end(): Promise<void>

  protected checkOpen(): void {
    if (this.#closed !== undefined) throw new ClosedError(`The ${this.#title} has been closed.`)
  }
}
