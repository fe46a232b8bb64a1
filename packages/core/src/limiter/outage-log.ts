import type { Timeouts } from "../decision/timeout-share.ts"
import { type Clock, soundTime } from "../ground/clock.ts"
import type { StoreUnavailableError } from "../ground/errors.ts"
import type { Warner } from "../ground/warnings.ts"
import type { Store } from "../stores/store.ts"
import { storeErrorOf } from "../stores/store-error.ts"

/** Interval between log lines in milliseconds, for a store that fails repeatedly. */
const LOG_EVERY_MS = 60_000

/**
 * Logs when the store fails and when it has recovered. At most one line a minute reports a failure. A recovery is
 * logged only after such a line. An outage that begins within that minute is logged when the minute is over, if it
 * still lasts.
 */
export class OutageLog {
  readonly #warner: Warner
  readonly #clock: Clock
  #loggedAtMs = Number.NEGATIVE_INFINITY
  /** The error that was logged, until the recovery is logged. Its message shows which of several stores failed. */
  readonly #consequence: string
  #logged: StoreUnavailableError | undefined

  constructor(warner: Warner, clock: Clock, { writeBack }: Store) {
    this.#warner = warner
    this.#clock = clock
    const decides = "each rule decides by its onStoreFailure"
    this.#consequence =
      writeBack === undefined ? decides : `${decides}, if the process does not count it itself`
  }

  /** Records a decision that was made without the store. */
  failed(error: unknown): void {
    if (this.#logged !== undefined) return
    const nowMs = soundTime(this.#clock)
    if (nowMs - this.#loggedAtMs < LOG_EVERY_MS) return
    this.#loggedAtMs = nowMs
    this.#logged = storeErrorOf(error)
    this.#warner.say(
      "error",
      "SLUICE_DEGRADED",
      `${this.#logged.message}\nUntil the store answers again, ${this.#consequence}.`,
      this.#logged,
    )
  }

  recovered(): void {
    if (this.#logged === undefined) return
    this.#warner.say(
      "warn",
      "SLUICE_RECOVERED",
      `The store answers again. It had failed with: ${this.#logged.message}`,
    )
    this.#logged = undefined
  }
}

/** Returns a warning that the timeout is too short for the store, or that the store or this process stalls. */
export function timeoutWarning({ decisions, late, roundTrip }: Timeouts, storeTimeoutMs: number): string {
  const found =
    `${late} of ${decisions} decisions within a minute were made without the store, because it did not answer within ` +
    `storeTimeoutMs (${storeTimeoutMs} ms).`
  const { medianMs, most95Ms } = roundTrip ?? { medianMs: 0, most95Ms: 0 }
  const suggestedMs = Math.ceil((2 * Math.max(most95Ms, storeTimeoutMs)) / 10) * 10
  if (roundTrip === undefined) {
    return `${found} No reply was measured. Set storeTimeoutMs to ${suggestedMs} if the store is far away.`
  }
  const measured = `Its replies take ${Math.ceil(medianMs)} ms (95 % of them at most ${Math.ceil(most95Ms)} ms)`
  if (medianMs > storeTimeoutMs) {
    return `${found} ${measured}. Set storeTimeoutMs to ${suggestedMs} or more, or move the store closer.`
  }
  return (
    `${found} ${measured}, so it is close enough. Connect to it before the app listens, and look for slow commands ` +
    `(SLOWLOG GET) and for work that blocks this process. Set storeTimeoutMs to ${suggestedMs} if such delays are normal.`
  )
}
