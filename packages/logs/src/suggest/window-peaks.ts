import type { CalendarRule } from "@sluice/core/adapters"
import { createReplay } from "@sluice/core/replay"
import { LogError } from "../log-error.ts"
import { roomFor } from "../replay/typed-arrays.ts"

/** Counts the requests of numbered clients as an algorithm does under an infinite limit. Times must not decrease. */
export interface WindowPeaks {
  /** Counts a request. */
  add(client: number, atMs: number): void
  /**
   * Returns the most units that the client has ever used within a window. Every limit below this number would refuse
   * the client.
   */
  peakOf(client: number): number
  /** Removes the counts of a client, so that its number can be reused for another client. */
  forget(client: number): void
}

/** An algorithm whose peaks do not depend on the limit, so that a log can suggest a limit for it. */
export type WindowAlgorithm = "sliding-window" | "fixed-window" | "sliding-window-strict" | "sliding-log"

/** All algorithms whose peaks do not depend on the limit. */
export const WINDOW_ALGORITHMS: readonly WindowAlgorithm[] = [
  "sliding-window",
  "fixed-window",
  "sliding-window-strict",
  "sliding-log",
]

/** Throws LogError if limits for the algorithm cannot be suggested. */
export function requireWindowAlgorithm(algorithm: string): void {
  if (WINDOW_ALGORITHMS.some((each) => each === algorithm)) return
  throw new LogError(
    algorithm === "token-bucket" || algorithm === "leaky-bucket"
      ? `--algorithm: peaks in a ${algorithm} depend on its limit, so a log cannot suggest one: suggest limits for sliding-window, and try them with "sluice rules replay --algorithm ${algorithm}"`
      : `--algorithm: ${algorithm} is not an algorithm. Expected one of ${WINDOW_ALGORITHMS.join(", ")}.`,
  )
}

type PeakCalendar = Pick<CalendarRule, "per" | "timeZone">

/** The default number of sub-windows of "sliding-window-strict". */
const SUB_WINDOWS = 60

/** Creates empty counts for an algorithm with its default settings. */
export function createWindowPeaks(
  algorithm: WindowAlgorithm,
  { ms: windowMs, calendar }: { readonly ms: number; readonly calendar?: PeakCalendar },
): WindowPeaks {
  if (calendar !== undefined) return new TwoWindowPeaks(windowMs, false, periodEnds(calendar))
  if (algorithm === "sliding-window") return new TwoWindowPeaks(windowMs, true)
  if (algorithm === "fixed-window") return new TwoWindowPeaks(windowMs, false)
  // `sliding-log` counts every request by its exact time. Requests at both ends of the window count.
  if (algorithm === "sliding-log") return new StepPeaks(1, windowMs)
  const stepMs = Math.ceil(windowMs / SUB_WINDOWS)
  return new StepPeaks(stepMs, Math.ceil(windowMs / stepMs))
}

/** Returns a function that returns the end of the calendar period that contains a time. */
function periodEnds(calendar: PeakCalendar): (atMs: number) => number {
  const replay = createReplay({ rules: [{ field: "service", limit: 1, ...calendar }] })
  return (atMs) => replay.offer({ atMs }).checks[0]?.policy.periods?.find((endMs) => endMs > atMs) as number
}

/** The offsets of a client's members in the array of `TwoWindowPeaks`. */
const [WINDOW, CURRENT, PREVIOUS, PEAK, MEMBERS] = [0, 1, 2, 3, 4] as const

/** Peaks of counters with a current and a previous window. Each client takes 16 adjacent bytes of memory. */
class TwoWindowPeaks implements WindowPeaks {
  readonly #windowMs: number
  readonly #slides: boolean
  readonly #endOf: ((atMs: number) => number) | undefined
  #endMs = Number.NEGATIVE_INFINITY
  /**
   * The number of the current window. The first request is in window 1, so window 0 means that a client has not been
   * counted.
   */
  #window = 0
  #startMs = Number.NEGATIVE_INFINITY
  #counts = new Uint32Array(0)

  /** With `endOf`, windows are periods of different lengths. It returns the end of the period that contains a time. */
  constructor(windowMs: number, slides: boolean, endOf?: (atMs: number) => number) {
    this.#windowMs = windowMs
    this.#slides = slides
    this.#endOf = endOf
  }

  add(client: number, atMs: number): void {
    const at = client * MEMBERS
    if (at >= this.#counts.length) this.#counts = roomFor(this.#counts, at)
    const counts = this.#counts
    const windowMs = this.#windowMs
    if (atMs >= this.#endMs) this.#startWindow(atMs)
    const last = counts[at + WINDOW] as number
    let current = 1
    let previous = 0
    if (last === this.#window) {
      current += counts[at + CURRENT] as number
      previous = counts[at + PREVIOUS] as number
    } else {
      if (this.#slides && last !== 0 && last === this.#window - 1) previous = counts[at + CURRENT] as number
      counts[at + WINDOW] = this.#window
      counts[at + PREVIOUS] = previous
    }
    counts[at + CURRENT] = current
    const left = previous === 0 ? 0 : Math.floor((previous * (windowMs - (atMs - this.#startMs))) / windowMs)
    const used = left + current
    if (used > (counts[at + PEAK] as number)) counts[at + PEAK] = used
  }

  peakOf(client: number): number {
    return this.#counts[client * MEMBERS + PEAK] ?? 0
  }

  forget(client: number): void {
    const at = client * MEMBERS
    this.#counts.fill(0, at, at + MEMBERS)
  }

  #startWindow(atMs: number): void {
    if (this.#endOf !== undefined) {
      this.#window++
      this.#endMs = this.#endOf(atMs)
      return
    }
    const startMs = atMs - (atMs % this.#windowMs)
    this.#window += this.#window === 0 ? 1 : (startMs - this.#startMs) / this.#windowMs
    this.#startMs = startMs
    this.#endMs = startMs + this.#windowMs
  }
}

/**
 * Peaks of counters that count the current step of time and the `span` previous steps. A queue contains one entry
 * for each client and step, and each entry is added and removed once. Therefore, the memory depends only on the
 * requests in one window.
 */
class StepPeaks implements WindowPeaks {
  readonly #stepMs: number
  readonly #span: number
  /** The entries as a ring buffer, whose size is a power of two. Entry number n is at index n modulo this size. */
  #clients = new Uint32Array(1024)
  #units = new Uint32Array(1024)
  /** The number of the first entry, and the number for the next new entry. */
  #first = 0
  #next = 0
  /** The steps with entries, each with the number of its first entry. */
  readonly #steps: { readonly step: number; readonly from: number }[] = []
  #firstStep = 0
  #used = new Uint32Array(0)
  #peaks = new Uint32Array(0)
  /** The number of the latest entry of each client, plus 1. */
  #latest = new Float64Array(0)
  /** The first entry of each client. Earlier entries belong to a removed client whose number was reused. */
  #since = new Float64Array(0)

  constructor(stepMs: number, span: number) {
    this.#stepMs = stepMs
    this.#span = span
  }

  add(client: number, atMs: number): void {
    if (client >= this.#peaks.length) this.#grow(client)
    const from = this.#startOf(Math.floor(atMs / this.#stepMs))
    const latest = (this.#latest[client] as number) - 1
    const isNew = latest < from
    if (isNew && this.#next - this.#first === this.#clients.length) this.#enlarge()
    const number = isNew ? this.#next++ : latest
    const index = number & (this.#clients.length - 1)
    this.#clients[index] = client
    this.#units[index] = isNew ? 1 : (this.#units[index] as number) + 1
    this.#latest[client] = number + 1
    const used = (this.#used[client] as number) + 1
    this.#used[client] = used
    if (used > (this.#peaks[client] as number)) this.#peaks[client] = used
  }

  peakOf(client: number): number {
    return this.#peaks[client] ?? 0
  }

  forget(client: number): void {
    if (client >= this.#peaks.length) return
    this.#used[client] = 0
    this.#peaks[client] = 0
    this.#latest[client] = 0
    this.#since[client] = this.#next
  }

  /** Starts a step if it is new, and returns the number of its first entry. */
  #startOf(step: number): number {
    const latest = this.#steps.at(-1)
    if (latest?.step === step) return latest.from
    this.#steps.push({ step, from: this.#next })
    while ((this.#steps[this.#firstStep] as { step: number }).step < step - this.#span) {
      this.#firstStep++
      const end = (this.#steps[this.#firstStep] as { from: number }).from
      while (this.#first < end) this.#remove(this.#first++)
    }
    if (this.#firstStep > 1024 && this.#firstStep * 2 > this.#steps.length) {
      this.#steps.splice(0, this.#firstStep)
      this.#firstStep = 0
    }
    return this.#next
  }

  #remove(number: number): void {
    const index = number & (this.#clients.length - 1)
    const client = this.#clients[index] as number
    if (number < (this.#since[client] as number)) return
    this.#used[client] = (this.#used[client] as number) - (this.#units[index] as number)
  }

  #enlarge(): void {
    const size = this.#clients.length
    const [clients, units] = [new Uint32Array(2 * size), new Uint32Array(2 * size)]
    for (let number = this.#first; number < this.#next; number++) {
      clients[number & (2 * size - 1)] = this.#clients[number & (size - 1)] as number
      units[number & (2 * size - 1)] = this.#units[number & (size - 1)] as number
    }
    this.#clients = clients
    this.#units = units
  }

  #grow(client: number): void {
    this.#used = roomFor(this.#used, client)
    this.#peaks = roomFor(this.#peaks, client)
    this.#latest = roomFor(this.#latest, client)
    this.#since = roomFor(this.#since, client)
  }
}
