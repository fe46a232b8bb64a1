import { type Clock, soundTime } from "../clock.ts"
import { ClosedError, type StoreUnavailableError, sentenceOf } from "../errors.ts"
import type { Warner } from "../warnings.ts"

/** In an outage refunds may be lost many times a second, and one line a minute tells as much. */
const LOG_EVERY_MS = 60_000

/** Reports refunds that nobody waited for and that failed: each of them as an event, and at most once a minute in the log. */
export class LostRefunds {
  readonly #warner: Warner
  readonly #clock: Clock
  readonly #emit: (error: StoreUnavailableError) => void
  #loggedAtMs = Number.NEGATIVE_INFINITY
  #unlogged = 0

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
    const nowMs = soundTime(this.#clock)
    if (nowMs - this.#loggedAtMs < LOG_EVERY_MS) return
    const lost =
      this.#unlogged === 1
        ? "A refund was lost, so its units"
        : `${this.#unlogged} refunds were lost, so their units`
    this.#loggedAtMs = nowMs
    this.#unlogged = 0
    this.#warner.say(
      "warn",
      "SLUICE_REFUND_LOST",
      `${lost} may stay taken until their window passes: ${sentenceOf(error.message)} ` +
        "Check the connection to the store. Lost refunds are logged at most once a minute.",
      error,
    )
  }
}
