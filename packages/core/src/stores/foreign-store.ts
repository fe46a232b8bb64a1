import { VERSION } from "../ground/copies.ts"
import { ClosedError, StoreUnavailableError, textOf } from "../ground/errors.ts"
import { isThenable, type MaybePromise } from "../ground/maybe-promise.ts"
import { beforeDeadline, ignore } from "../ground/time.ts"
import { refundsOf } from "./refunds-of.ts"
import { RoundTrips } from "./round-trips.ts"
import { soundReading, soundResult } from "./sound-answer.ts"
import {
  BACKGROUND_REFUND_MS,
  type Check,
  type CounterKey,
  type Refund,
  type Store,
  type StoreEvent,
  type StoreReading,
  type StoreResult,
} from "./store.ts"
import { storeErrorOf } from "./store-error.ts"
import { StoreListeners } from "./store-listeners.ts"
import type { StoreStatus } from "./store-status.ts"

/** The shortest timeout, in milliseconds, by which a refund is recognized as a background refund. */
const LEAST_BACKGROUND_MS = 1_000

/**
 * The methods that one of Sluice's own stores inherits from its class. If the app has replaced a method, the store
 * needs a guard.
 */
const METHODS: readonly (keyof Store)[] = ["take", "read", "refund", "reset"]

/**
 * The mark of a store that needs no guard. All copies of this version share the mark, so they trust the same stores.
 */
const GUARDED = Symbol.for(`@sluice/core ${VERSION} guarded store`)
const guardOf = new WeakMap<Store, Store>()

/**
 * Marks a store that needs no guard, and returns the store. Such a store applies the deadlines itself. Its methods
 * return values or promises, but no other thenables. These methods fail with {@link StoreUnavailableError} or {@link
 * ClosedError} only, and their results are valid.
 */
export function guardedStore<Own extends Store>(store: Own): Own {
  return Object.defineProperty(store, GUARDED, { value: true })
}

/**
 * Puts a guard in front of a store of any origin, so that callers can rely on the guarantees of {@link guardedStore}.
 * Returns the same guard for the same store, and returns one of Sluice's own stores unchanged.
 */
export function foreignStore(store: Store): Store {
  // A derived object inherits the mark of its prototype, but may have other methods.
  if (Object.hasOwn(store, GUARDED) && !METHODS.some((name) => Object.hasOwn(store, name))) return store
  let guard = guardOf.get(store)
  if (guard === undefined) {
    guard = guardedStore(new ForeignStore(store))
    guardOf.set(store, guard)
  }
  return guard
}

/**
 * Applies the deadlines to a store, checks its results, and converts the values that it throws into Sluice's errors.
 */
class ForeignStore implements Store {
  readonly #store: Store
  readonly #roundTrips = new RoundTrips()
  readonly #listeners = new StoreListeners<StoreEvent>("a store")
  /** The latest failure that was not one of Sluice's errors. */
  #failure: { readonly message: string; readonly error: StoreUnavailableError } | undefined

  constructor(store: Store) {
    this.#store = store
  }

  get isShared(): boolean | undefined {
    return this.#store.isShared
  }

  get status(): StoreStatus {
    return { recentRoundTripsMs: this.#roundTrips.recent, ...this.#store.status }
  }

  take(checks: readonly Check[], withinMs?: number): MaybePromise<StoreResult> {
    return this.#call(() => this.#store.take(checks, withinMs), {
      withinMs,
      sound: (result) => soundResult(checks, result),
      late: (result) => this.#refundLate(refundsOf(checks, result.checks)),
    })
  }

  read(checks: readonly Check[], withinMs?: number): MaybePromise<StoreReading> {
    return this.#call(() => this.#store.read(checks, withinMs), {
      withinMs,
      sound: (reading) => soundReading(checks, reading),
    })
  }

  refund(refunds: readonly Refund[], withinMs?: number): MaybePromise<void> {
    const keepsAlive = withinMs === undefined || withinMs < LEAST_BACKGROUND_MS
    return this.#call(() => this.#store.refund(refunds, withinMs), { withinMs, sound: ignore, keepsAlive })
  }

  reset(keys: readonly CounterKey[], withinMs?: number): MaybePromise<void> {
    return this.#call(() => this.#store.reset(keys, withinMs), { withinMs, sound: ignore })
  }

  subscribe(listener: (event: StoreEvent) => void): () => void {
    const stops = [this.#store.subscribe?.(listener), this.#listeners.add(listener)]
    return () => {
      for (const stop of stops) stop?.()
    }
  }

  close(): MaybePromise<void> {
    return this.#store.close()
  }

  #call<Answer>(call: () => MaybePromise<Answer>, how: GuardedCall<Answer>): MaybePromise<Answer> {
    const sentAtMs = performance.now()
    let answer: MaybePromise<Answer>
    let isLater: boolean
    try {
      answer = call()
      // The getter `then` of a result may throw.
      isLater = isThenable(answer)
    } catch (error) {
      throw this.#failureOf(error)
    }
    return isLater ? this.#inTime(Promise.resolve(answer), sentAtMs, how) : how.sound(answer)
  }

  #inTime<Answer>(answered: Promise<Answer>, sentAtMs: number, how: GuardedCall<Answer>): Promise<Answer> {
    const { withinMs, sound, late, keepsAlive } = how
    let isLate = false
    const sounded = answered.then(
      (answer) => {
        this.#roundTrips.add(sentAtMs)
        const checked = sound(answer)
        if (isLate) late?.(checked)
        return checked
      },
      (error: unknown) => {
        throw this.#failureOf(error)
      },
    )
    if (withinMs === undefined) return sounded
    const message = `The store did not respond within ${withinMs} ms.`
    const timeout = (): Promise<Answer> => {
      isLate = true
      return Promise.reject(new StoreUnavailableError(message, { kind: "timeout" }))
    }
    return beforeDeadline(sounded, withinMs, timeout, keepsAlive)
  }

  /**
   * Converts a failure into one of Sluice's errors. In an outage, equal failures share an error, because creating an
   * error is expensive.
   */
  #failureOf(error: unknown): Error {
    if (error instanceof ClosedError || error instanceof StoreUnavailableError) return error
    const message = error instanceof Error ? error.message : textOf(error)
    if (this.#failure?.message !== message) this.#failure = { message, error: storeErrorOf(error) }
    return this.#failure.error
  }

  /** Refunds units that were taken after the deadline, because the request was decided without them. */
  #refundLate(refunds: readonly Refund[]): void {
    if (refunds.length === 0) return
    const lost = (error: unknown): void =>
      this.#listeners.emit({ type: "refund-lost", error: storeErrorOf(error) })
    Promise.resolve()
      .then(() => this.refund(refunds, BACKGROUND_REFUND_MS))
      .catch(lost)
  }
}

/** How a call is guarded. */
interface GuardedCall<Answer> {
  readonly withinMs: number | undefined
  /** Returns the result if it is valid, and throws if it is not. */
  readonly sound: (answer: unknown) => Answer
  /** Called with a valid result that arrived after the deadline. */
  readonly late?: (answer: Answer) => void
  /** Whether the deadline keeps the process alive. Default: true. */
  readonly keepsAlive?: boolean
}
