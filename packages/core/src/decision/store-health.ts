import { type Clock, soundTime } from "../ground/clock.ts"
import type { StoreUnavailableError } from "../ground/errors.ts"
import type { Store } from "../stores/store.ts"
import { storeErrorOf } from "./store-error.ts"
import { TimeoutShare, type Timeouts } from "./timeout-share.ts"

/**
 * How long a store has to answer without a failure to have recovered: one that fails for some keys and not for others, or
 * for want of CPU, would otherwise be news with every decision.
 */
const STEADY_MS = 10_000

/** A store that is watched, and who is told about it. */
export interface HealthOptions {
  readonly store: Store
  /** Milliseconds from the moment of the call after which a silent store counts as gone. */
  readonly storeTimeoutMs: number
  readonly clock: Clock
  /** The first failure, and the first answer after ten seconds without one. */
  readonly onDegraded: (error: StoreUnavailableError) => void
  readonly onRecovered: () => void
  /** Each failure, whatever the store threw or rejected with. */
  readonly onStoreError: (error: unknown) => void
  /** Too many decisions were degraded by timeouts: once. */
  readonly onTimeouts: (timeouts: Timeouts) => void
}

/** Watches whether a store answers, and in time. */
export class StoreHealth {
  /** Decisions that the store has made. The caller adds to it: it is all that a decision costs while all is well. */
  answers = 0
  /** Whether `answered` has to be called: a failure was recent, or a minute with timeouts is being counted. */
  isUnsettled = false
  readonly #options: HealthOptions
  readonly #timeouts: TimeoutShare
  #isDegraded = false
  #failedAtMs = 0

  constructor(options: HealthOptions) {
    this.#options = options
    const { store, storeTimeoutMs, onTimeouts } = options
    this.#timeouts = new TimeoutShare(store, storeTimeoutMs, () => this.answers, onTimeouts)
  }

  /** The store has failed, and a decision is made without it. */
  failed(error: unknown): void {
    const { clock, onStoreError, onDegraded } = this.#options
    this.#failedAtMs = soundTime(clock)
    this.isUnsettled = true
    if (this.#isDegraded) onStoreError(error)
    else {
      this.#isDegraded = true
      const failure = storeErrorOf(error)
      onStoreError(failure)
      onDegraded(failure)
    }
    this.#timeouts.failed(error, this.#failedAtMs)
  }

  /** The store has answered, and not from memory. */
  answered(): void {
    const { store, clock, onRecovered } = this.#options
    const nowMs = soundTime(clock)
    // The answers of one node say nothing of another, which nobody may have asked for since it was given up.
    const isSteady = nowMs >= this.#failedAtMs + STEADY_MS && (store.openBreakers ?? 0) === 0
    if (this.#isDegraded && isSteady) {
      this.#isDegraded = false
      onRecovered()
    }
    this.#timeouts.passed(nowMs)
    this.isUnsettled = this.#isDegraded || this.#timeouts.isCounting
  }

  /** Measures an answer that comes after the deadline, to what was sent at an instant of the monotonic clock. */
  timeLate(answers: PromiseLike<unknown>, sentAtMs: number): void {
    this.#timeouts.timeLate(answers, sentAtMs)
  }
}
