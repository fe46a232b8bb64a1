import { ClosedError, type Store, StoreUnavailableError } from "@sluice/core"
import { beforeDeadline, type MaybePromise } from "@sluice/core/kit"
import {
  BACKGROUND_REFUND_MS,
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
  storeErrorOf,
} from "@sluice/core/stores"
import type { CallsInFlight } from "./calls-in-flight.ts"

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
    this.wrapped = foreignStore(wrapped)
    this.listeners = new StoreListeners(`the ${title}`)
    guardedStore<Store>(this)
  }

  /** What the wrapped store reports. */
  get status(): StoreStatus | undefined {
    return this.wrapped.status
  }

  abstract take(checks: readonly Check[], withinMs?: number): MaybePromise<StoreResult>

  abstract read(checks: readonly Check[], withinMs?: number): MaybePromise<StoreReading>

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

  /** Charges or gives back what is pending, and closes the wrapped store. */
  protected abstract end(): Promise<void>

  /** Refunds what this store did not take itself: `rest` of `all`. */
  protected refundRest(
    rest: readonly Refund[],
    all: readonly Refund[],
    withinMs: number | undefined,
  ): MaybePromise<void> {
    // A refund of nothing reaches the wrapped store, too, so that it fails as it does without this store.
    if (rest.length === all.length) return this.wrapped.refund(rest, withinMs)
    return rest.length === 0 ? undefined : this.#refundPart(rest, withinMs)
  }

  /** Refunds a part. If this fails, the other part has been applied nevertheless. */
  async #refundPart(rest: readonly Refund[], withinMs: number | undefined): Promise<void> {
    try {
      await this.wrapped.refund(rest, withinMs)
    } catch (error) {
      const { message, kind } = storeErrorOf(error)
      throw new StoreUnavailableError(message, { kind, outcome: "unknown", cause: error })
    }
  }

  /** Resets counters when the calls in flight have been answered, which would change the counters after the reset. */
  protected async resetWrapped(
    keys: readonly CounterKey[],
    inFlight: CallsInFlight,
    withinMs: number | undefined,
  ): Promise<void> {
    const startedMs = performance.now()
    if (!inFlight.isEmpty) {
      await beforeDeadline(inFlight.settled(), (withinMs ?? BACKGROUND_REFUND_MS) / 2, () => undefined)
    }
    await this.wrapped.reset(keys, withinMs && withinMs - (performance.now() - startedMs))
  }

  protected checkOpen(): void {
    if (this.#closed !== undefined) throw new ClosedError(`The ${this.#title} has been closed.`)
  }
}
