import { AsyncResource } from "node:async_hooks"
import { type Clock, waitUnheld } from "../ground/clock.ts"
import { ClosedError, type StoreUnavailableError, sentenceOf } from "../ground/errors.ts"
import type { Warner } from "../ground/warnings.ts"

/** In an outage refunds may be lost many times a second, and one line a minute tells as much. */
const LOG_EVERY_MS = 60_000

/**
 * Reports refunds that nobody waited for and that failed: each of them as an event, and at most once a minute in the log. The
 * first is logged at once, the others with their number when the minute is over or the limiter is closed.
 */
export class LostRefunds {
  readonly #warner: Warner
  readonly #clock: Clock
  readonly #emit: (error: StoreUnavailableError) => void
  /** A timer that is set in a request would keep alive what the request has in an AsyncLocalStorage. */
  readonly #outside = new AsyncResource("SluiceLostRefunds")
  /** Ends the minute since the last line; undefined when it is over. */
  #minute: AbortController | undefined
  #unlogged = 0
  #lastError: StoreUnavailableError | undefined

  constructor(warner: Warner, clock: Clock, emit: (error: StoreUnavailableError) => void) {
    this.#warner = warner
    this.#clock = clock
    this.#emit = emit
  }

  report(error: StoreUnavailableError): void {
    // Someone closed the store on purpose.
    if (error.cause instanceof ClosedError) return
    this.#emit(error)
    this.#unlogged++
    this.#lastError = error
    if (this.#minute === undefined) this.#outside.runInAsyncScope(() => void this.#logEachMinute())
  }

  /** Logs what is not logged yet. */
  close(): void {
    this.#minute?.abort()
    this.#log()
  }

  async #logEachMinute(): Promise<void> {
    const minute = new AbortController()
    this.#minute = minute
    const wait = this.#clock.wait === undefined ? waitUnheld : this.#clock.wait.bind(this.#clock)
    try {
      while (this.#log()) await wait(LOG_EVERY_MS, minute.signal)
    } catch {
      // The limiter was closed, or its clock has no way to wait: then each loss is logged.
    }
    this.#minute = undefined
  }

  /** Returns false if there was nothing to log. */
  #log(): boolean {
    const error = this.#lastError
    if (error === undefined) return false
    const lost =
      this.#unlogged === 1
        ? "A refund was lost, so its units"
        : `${this.#unlogged} refunds were lost, so their units`
    this.#unlogged = 0
    this.#lastError = undefined
    this.#warner.say(
      "warn",
      "SLUICE_REFUND_LOST",
      `${lost} may stay taken until their window passes: ${sentenceOf(error.message)} ` +
        "Check the connection to the store. Lost refunds are logged at most once a minute.",
      error,
    )
    return true
  }
}
