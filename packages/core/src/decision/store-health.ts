import { type Clock, soundTime } from "../ground/clock.ts"
import type { StoreUnavailableError } from "../ground/errors.ts"
import type { Store } from "../stores/store.ts"
import { storeErrorOf } from "../stores/store-error.ts"
import { TimeoutShare, type Timeouts } from "./timeout-share.ts"

/**
 * How long a store must respond without a failure before it counts as recovered, in milliseconds. A store may fail
 * only for some keys, or only sometimes for lack of CPU. Without this delay, each decision could report an outage or
 * the end of an outage.
 */
const STEADY_MS = 10_000

/** A watched store and the callbacks that report on it. */
export interface HealthOptions {
  readonly store: Store
  /** Milliseconds after a call at which a store that has not responded counts as unavailable. */
  readonly storeTimeoutMs: number
  readonly clock: Clock
  /** Called for the first result after ten seconds without a failure. */
  readonly onRecovered: () => void
  /** Called for each failure, with the value that the store threw or rejected with. */
  readonly onStoreError: (error: unknown) => void
  /** Called for a failure during an outage if its error differs from the error of the previous failure. */
  readonly onFailedAgain: (error: unknown) => void
  /** Called once, when timeouts have degraded too many decisions. */
  readonly onTimeouts: (timeouts: Timeouts) => void
}

/** Watches whether a store responds, and whether it responds in time. */
export class StoreHealth {
  /**
   * Number of decisions that the store has made. The caller increments this number, which is the only cost while the
   * store responds.
   */
  answers = 0
  /**
   * Whether the caller has to call `answered`, because a failure was recent or a minute with timeouts is being
   * counted.
   */
  isWatching = false
  readonly #options: HealthOptions
  readonly #timeouts: TimeoutShare
  #isDegraded = false
  #latest: unknown
  #failedAtMs = 0

  constructor(options: HealthOptions) {
    this.#options = options
    const { store, storeTimeoutMs, onTimeouts } = options
    this.#timeouts = new TimeoutShare(store, storeTimeoutMs, () => this.answers, onTimeouts)
  }

  /**
   * Records a store failure. The caller makes the decision without the store. Returns the failure if an outage begins
   * with this failure.
   */
  failed(error: unknown): StoreUnavailableError | undefined {
    const { clock, onStoreError, onFailedAgain } = this.#options
    this.#failedAtMs = soundTime(clock)
    this.isWatching = true
    const first = this.#isDegraded ? undefined : storeErrorOf(error)
    this.#isDegraded = true
    // Report only a changed error, because all failures have the same error while a circuit breaker is open.
    if (first === undefined && error !== this.#latest) onFailedAgain(error)
    this.#latest = error
    onStoreError(first ?? error)
    this.#timeouts.failed(error, this.#failedAtMs)
    return first
  }

  /** Records a result that is not from the store's cache. */
  answered(): void {
    const { store, clock, onRecovered } = this.#options
    const nowMs = soundTime(clock)
    // A result from one server says nothing about another server, which may have received no calls since its circuit
    // breaker opened.
    const isSteady = nowMs >= this.#failedAtMs + STEADY_MS && (store.status?.openBreakers ?? 0) === 0
    if (this.#isDegraded && isSteady) {
      this.#isDegraded = false
      onRecovered()
    }
    this.#timeouts.passed(nowMs)
    this.isWatching = this.#isDegraded || this.#timeouts.isCounting
  }
}
