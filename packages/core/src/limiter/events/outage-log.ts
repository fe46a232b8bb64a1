import type { Timeouts } from "../../decision/timeout-share.ts"
import { type Clock, soundTime } from "../../ground/clock.ts"
import { type StoreUnavailableError, sentenceOf, textOf } from "../../ground/errors.ts"
import { Incident, type IncidentLine } from "../../ground/incident.ts"
import type { Warner, WarningCode } from "../../ground/warnings.ts"
import { storeErrorOf } from "../../stores/store-error.ts"

const MINUTE_MS = 60_000

/** Maximum number of causes logged per outage, because a custom store's message may differ with each request. */
const MOST_CAUSES = 4

/**
 * Logs the beginning and the end of each outage of the store, and each further cause. An outage ends after ten
 * seconds without a failure, so at most six begin in a minute. If the past minute had several outages, the first and
 * the last line of an outage contain their number.
 */
export class OutageLog {
  readonly #outage: Incident
  readonly #clock: Clock
  /** Start times of the outages in the past minute. */
  #beganMs: readonly number[] = []

  constructor(warner: Warner, clock: Clock) {
    this.#outage = new Incident(warner)
    this.#clock = clock
  }

  /** Logs that decisions are made without the store. `inForce` describes how decisions are made. */
  began(error: StoreUnavailableError, inForce: string): void {
    this.#beganMs = [...this.#beganMs, soundTime(this.#clock)]
    const text = `${sentenceOf(error.message)}\nUntil the store responds again, ${inForce}.${this.#flapping()}`
    this.#outage.add(lineOf("SLUICE_DEGRADED", text, error))
  }

  /** Logs another cause of the current outage, unless this cause was logged before. */
  failedAgain(error: unknown): void {
    const causes = this.#causes
    if (causes.length === 0 || causes.length === MOST_CAUSES || this.#outage.has(keyOf(error))) return
    const cause = storeErrorOf(error)
    const text = `${sentenceOf(cause.message)} This is another cause of the outage that began with: ${causes[0]}`
    this.#outage.add(lineOf("SLUICE_DEGRADED_FURTHER", text, cause))
  }

  ended(): void {
    const message = `The store responds again. It had failed with: ${this.#causes.join(" Later with: ")}${this.#flapping()}`
    this.#outage.end({ level: "warn", code: "SLUICE_RECOVERED", message })
  }

  /**
   * Messages of the store's errors since the outage began. A message contains the name of the failed store if there
   * are several.
   */
  get #causes(): readonly string[] {
    return this.#outage.lines.map(({ cause }) => sentenceOf((cause as Error).message))
  }

  #flapping(): string {
    const sinceMs = soundTime(this.#clock) - MINUTE_MS
    this.#beganMs = this.#beganMs.filter((ms) => ms > sinceMs)
    const { length } = this.#beganMs
    return length > 1 ? ` There were ${length} outages in the past minute.` : ""
  }
}

function lineOf(code: WarningCode, message: string, cause: StoreUnavailableError): IncidentLine {
  return { level: "error", code, message, cause, key: keyOf(cause) }
}

/** Returns the first sentence of an error, which is the cause. The next sentence describes the store's reaction. */
function keyOf(error: unknown): string {
  const text = error instanceof Error ? error.message : textOf(error)
  // A store error that wraps another error begins with these words.
  return (text.split(/\.(?: |$)/, 1)[0] as string).replace(/^The store failed: /, "")
}

/** Returns a warning that the timeout is too short for the store, or that the store or this process stalls. */
export function timeoutWarning({ decisions, late, roundTrip }: Timeouts, storeTimeoutMs: number): string {
  const found =
    `${late} of ${decisions} decisions within a minute were made without the store, because it did not respond within ` +
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
