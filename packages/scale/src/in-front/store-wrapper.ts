import { ClosedError, type Store } from "@sluice/core"
import type { MaybePromise } from "@sluice/core/kit"
import {
  type Check,
  type CounterKey,
  foreignStore,
  guardedStore,
  type Refund,
  type StoreEvent,
  StoreListeners,
  type StoreReading,
  type StoreResult,
  type StoreStatus,
} from "@sluice/core/stores"

/**
 * A store in front of a shared store. It reports the condition and the events of the shared store.
 */
export abstract class StoreWrapper implements Store {
  readonly isShared = true
  protected readonly wrapped: Store
  protected readonly listeners: StoreListeners<StoreEvent>
  readonly #title: string
  #closed: Promise<void> | undefined

  /** `title` names this store in messages, for example "leased store". */
  constructor(title: string, wrapped: Store) {
    this.#title = title
    this.wrapped = foreignStore(wrapped)
    this.listeners = new StoreListeners(`the ${title}`)
    guardedStore<Store>(this)
  }

  /** The status of the wrapped store. */
  get status(): StoreStatus | undefined {
    return this.wrapped.status
  }

  abstract take(checks: readonly Check[], withinMs?: number): MaybePromise<StoreResult>

  abstract read(checks: readonly Check[], withinMs?: number): MaybePromise<StoreReading>

  abstract refund(refunds: readonly Refund[], withinMs?: number): MaybePromise<void>

  abstract reset(keys: readonly CounterKey[], withinMs?: number): MaybePromise<void>

  /** The stores whose events this store forwards. */
  protected get sources(): readonly Store[] {
    return [this.wrapped]
  }

  subscribe(listener: (event: StoreEvent) => void): () => void {
    this.checkOpen()
    const stops = [this.listeners.add(listener), ...this.sources.map((store) => store.subscribe?.(listener))]
    return () => {
      for (const stop of stops) stop?.()
    }
  }

  close(): Promise<void> {
    this.#closed ??= this.end().finally(() => this.listeners.clear())
    return this.#closed
  }

  /** Charges or refunds the pending units, and closes the wrapped store. */
  protected abstract end(): Promise<void>

  protected checkOpen(): void {
    if (this.#closed !== undefined) throw new ClosedError(`The ${this.#title} has been closed.`)
  }
}
