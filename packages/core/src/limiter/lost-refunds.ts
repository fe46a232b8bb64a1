import { AsyncResource } from "node:async_hooks"
import { type Clock, waitOf } from "../ground/clock.ts"
import { ClosedError, type StoreUnavailableError, sentenceOf } from "../ground/errors.ts"
import type { Warner } from "../ground/warnings.ts"

/** Interval between log lines in milliseconds. In an outage refunds may be lost many times a second. */
const LOG_EVERY_MS = 60_000

/**
 * Reports failed background refunds: each one as an event, and at most once a minute in the log. The first loss is
 * logged at once. Later losses are logged with their number when the minute is over or the limiter is closed.
 */
export class LostRefunds {
  readonly #warner: Warner
  readonly #clock: Clock
  readonly #emit: (error: StoreUnavailableError) => void
  /** Runs the timer outside of requests. A timer set in a request would keep its AsyncLocalStorage context alive. */
  readonly #outside = new AsyncResource("SluiceLostRefunds")
  /** Ends the minute since the last log line; undefined when it is over. */
  #minute: AbortController | undefined
  #unlogged = 0
  #lastError: StoreUnavailableError | undefined

  constructor(warner: Warner, clock: Clock, emit: (error: StoreUnavailableError) => void) {
    this.#warner = warner
    this.#clock = clock
    this.#emit = emit
  }

  report(error: StoreUnavailableError): void {
    // The app closed the store on purpose.
    if (error.cause instanceof ClosedError) return
    this.#emit(error)
    this.#unlogged++
    this.#lastError = error
    if (this.#minute === undefined) this.#outside.runInAsyncScope(() => void this.#logEachMinute())
  }

  /** Logs losses that are not logged yet. */
  close(): void {
    this.#minute?.abort()
    this.#log()
  }

  async #logEachMinute(): Promise<void> {
    const minute = new AbortController()
    this.#minute = minute
    const wait = waitOf(this.#clock)
    try {
      while (this.#log()) await wait(LOG_EVERY_MS, minute.signal)
    } catch {
      // The limiter was closed, or its clock cannot wait. In the second case each loss is logged.
    }
    this.#minute = undefined
  }

  /** Logs the losses since the last line. Returns false if there were none. */
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
