import { type Clock, steadyClock } from "./clock.ts"
import { sentenceOf } from "./errors.ts"
import { outsideRequests, waitOf } from "./time.ts"
import type { Warner, WarningCode } from "./warnings.ts"

/** A log line about an incident. */
export interface IncidentLine {
  /** The logger's method. */
  readonly level: "warn" | "error"
  /** The code of the warning. */
  readonly code: WarningCode
  /** The message. A function is called with the number of occurrences since the last line. */
  readonly message: string | ((times: number) => string)
  /** The error that was caught. Absent if no error was caught. */
  readonly cause?: unknown
  /** Identifies the cause. An incident logs only one line about each cause. Default: the code. */
  readonly key?: string
}

/**
 * Interval between two lines about losses, in milliseconds. Losses are not logged one by one, because an outage may
 * cause many per second.
 */
const LOSSES_EVERY_MS = 60_000

/**
 * A problem that may last, or occur many times. One line is logged when the incident begins, and one for each further
 * cause. After that, at most one line is logged per interval, and one when the incident ends. If the clock cannot
 * wait, the line of a lasting incident is not repeated, and every occurrence of any other incident is logged.
 */
export class Incident {
  readonly #warner: Pick<Warner, "say">
  readonly #everyMs: number | undefined
  readonly #clock: Clock
  readonly #isLasting: boolean
  #lines: readonly IncidentLine[] = []
  #latest: IncidentLine | undefined
  #unlogged = 0
  /** Ends the pause before the next line. Undefined if no timer will log another line. */
  #pause: AbortController | undefined

  /**
   * With `everyMs`, the latest line is repeated at this interval, as the clock measures it. If `isLasting`, the line
   * is repeated until `end`. Otherwise the line is repeated only if the problem has occurred since, and the incident
   * ends if it has not.
   */
  constructor(
    warner: Pick<Warner, "say">,
    everyMs?: number,
    clock: Clock = steadyClock,
    isLasting: boolean = true,
  ) {
    this.#warner = warner
    this.#everyMs = everyMs
    this.#clock = clock
    this.#isLasting = isLasting
  }

  /** Creates an incident for losses, whose lines are from `lossLine`. Logs at most one line per minute. */
  static ofLosses(warner: Pick<Warner, "say">, clock: Clock): Incident {
    return new Incident(warner, LOSSES_EVERY_MS, clock, false)
  }

  /**
   * Returns the line about losses. `lost` returns the losses and their consequence: "3 refunds were lost, so their
   * units may stay taken". `advice` is a sentence.
   */
  static lossLine(
    code: WarningCode,
    lost: (losses: number) => string,
    cause: Error,
    advice: string,
  ): IncidentLine {
    const message = (losses: number) =>
      `${lost(losses)}: ${sentenceOf(cause.message)} ${advice} Such losses are logged at most once a minute.`
    return { level: "warn", code, message, cause }
  }

  /** The first line about each cause since the incident began. Empty after the incident has ended. */
  get lines(): readonly IncidentLine[] {
    return this.#lines
  }

  /** True if the incident has a line about this cause. */
  has(key: string): boolean {
    return this.#lines.some((line) => keyOf(line) === key)
  }

  /** Begins the incident with this cause. If the incident has already begun with other causes, ends it first. */
  begin(line: IncidentLine, times = 1): boolean {
    if (!this.has(keyOf(line))) this.end()
    return this.add(line, times)
  }

  /**
   * Begins the incident, or adds occurrences to it. Logs the line if no earlier line has this cause. Otherwise, adds
   * the occurrences to the count in the next line. Returns true if the line was logged.
   */
  add(line: IncidentLine, times = 1): boolean {
    const isNew = !this.has(keyOf(line))
    this.#latest = line
    this.#unlogged += times
    if (!isNew) return false
    this.#lines = [...this.#lines, line]
    this.#log()
    const everyMs = this.#everyMs
    if (everyMs !== undefined && this.#pause === undefined) {
      // A timer that is set in a request would keep its AsyncLocalStorage context alive.
      outsideRequests(() => void this.#repeat(everyMs))
    }
    return true
  }

  /** Ends the incident without logging remaining occurrences. Logs `line` if the incident had begun. */
  end(line?: IncidentLine): void {
    const hadBegun = this.#lines.length > 0
    this.#lines = []
    this.#unlogged = 0
    this.#pause?.abort()
    this.#pause = undefined
    if (hadBegun && line !== undefined) this.#say(line)
  }

  /** Logs the occurrences that are not logged yet, and ends the incident. */
  close(): void {
    this.#log()
    this.end()
  }

  async #repeat(everyMs: number): Promise<void> {
    const pause = new AbortController()
    this.#pause = pause
    const wait = waitOf(this.#clock)
    try {
      do {
        await wait(everyMs, pause.signal)
        // Check the signal, because the app's clock may ignore it.
        pause.signal.throwIfAborted()
        if (this.#isLasting) this.#unlogged ||= 1
      } while (this.#log())
    } catch {
      // The wait rejects if the incident has ended or the clock cannot wait.
    }
    if (this.#pause !== pause) return
    this.#pause = undefined
    if (!this.#isLasting) this.#lines = []
  }

  /** Logs the latest line with the number of occurrences. Returns false if there were no occurrences. */
  #log(): boolean {
    if (this.#latest === undefined || this.#unlogged === 0) return false
    const times = this.#unlogged
    this.#unlogged = 0
    this.#say(this.#latest, times)
    return true
  }

  #say({ level, code, message, cause }: IncidentLine, times = 1): void {
    this.#warner.say(level, code, typeof message === "string" ? message : message(times), cause)
  }
}

function keyOf({ key, code }: IncidentLine): string {
  return key ?? code
}
