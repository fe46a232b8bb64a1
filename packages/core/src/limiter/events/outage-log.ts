import type { Timeouts } from "../../decision/timeout-share.ts"
import { type Clock, soundTime } from "../../ground/clock.ts"
import { type StoreUnavailableError, sentenceOf } from "../../ground/errors.ts"
import type { Warner } from "../../ground/warnings.ts"

const MINUTE_MS = 60_000

/**
 * Logs the beginning and the end of each outage of the store, and each further cause. An outage ends after ten seconds
 * without a failure, so at most six begin in a minute. The first and the last line of an outage say how many outages
 * the past minute had, if it had several.
 */
export class OutageLog {
  readonly #warner: Warner
  readonly #clock: Clock
  /** When the outages of the past minute began. */
  #beganMs: readonly number[] = []
  /** What the store failed with, until the recovery is logged. A message shows which of several stores failed. */
  #causes: readonly string[] = []

  constructor(warner: Warner, clock: Clock) {
    this.#warner = warner
    this.#clock = clock
  }

  /** Logs that decisions are made without the store. `inForce` says how. */
  began(error: StoreUnavailableError, inForce: string): void {
    this.#causes = [sentenceOf(error.message)]
    this.#beganMs = [...this.#beganMs, soundTime(this.#clock)]
    const text = `${sentenceOf(error.message)}\nUntil the store answers again, ${inForce}.${this.#flapping()}`
    this.#warner.say("error", "SLUICE_DEGRADED", text, error)
  }

  /** Logs that the store now fails for another reason than at the beginning of the outage. */
  hasAnotherCause(error: StoreUnavailableError): void {
    const [first] = this.#causes
    if (first === undefined) return
    const cause = sentenceOf(error.message)
    this.#causes = [...this.#causes, cause]
    const text = `${cause} This is another cause of the outage that began with: ${first}`
    this.#warner.say("error", "SLUICE_DEGRADED_FURTHER", text, error)
  }

  ended(): void {
    if (this.#causes.length === 0) return
    const causes = this.#causes.join(" Later with: ")
    const text = `The store answers again. It had failed with: ${causes}${this.#flapping()}`
    this.#causes = []
    this.#warner.say("warn", "SLUICE_RECOVERED", text)
  }

  #flapping(): string {
    const sinceMs = soundTime(this.#clock) - MINUTE_MS
    this.#beganMs = this.#beganMs.filter((ms) => ms > sinceMs)
    const { length } = this.#beganMs
    return length > 1 ? ` There were ${length} outages in the past minute.` : ""
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
