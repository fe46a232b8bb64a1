import { AsyncResource } from "node:async_hooks"
import { type Clock, waitOf } from "./clock.ts"
import { sentenceOf } from "./errors.ts"
import type { Warner, WarningCode } from "./warnings.ts"

/** Interval between log lines in milliseconds. In an outage, units may be lost many times a second. */
const LOG_EVERY_MS = 60_000

/** A kind of loss: what is logged about it. */
export interface LossKind {
  /** The code of the warning. */
  readonly code: WarningCode
  /** What was lost, and the consequence: "3 refunds were lost, so their units may stay taken". */
  readonly textOf: (losses: number) => string
  /** What to do, as a sentence. */
  readonly advice: string
}

const CHECK_STORE = "Check the connection to the store."

/** Failed refunds in the background. */
export const LOST_REFUNDS: LossKind = {
  code: "SLUICE_REFUND_LOST",
  textOf(losses) {
    const lost =
      losses === 1 ? "A refund was lost, so its units" : `${losses} refunds were lost, so their units`
    return `${lost} may stay taken until their window passes`
  },
  advice: CHECK_STORE,
}

/** Failed charges to the counters of another data center, or to the shared counters of a store that writes back. */
export const LOST_CHARGES: LossKind = {
  code: "SLUICE_CHARGES_LOST",
  textOf(losses) {
    const times = losses === 1 ? "" : ` ${losses} times`
    return `Admitted units were not charged to other counters${times}, so these may admit as many units again`
  },
  advice: CHECK_STORE,
}

/**
 * Logs losses: the first one at once, and later ones with their number when a minute is over or the limiter is
 * closed.
 */
export class LossLog {
  readonly #warner: Warner
  readonly #clock: Clock
  readonly #kind: LossKind
  /** Runs the timer outside of requests. A timer set in a request would keep its AsyncLocalStorage context alive. */
  readonly #outside = new AsyncResource("SluiceLossLog")
  /** Ends the minute since the last log line; undefined when it is over. */
  #minute: AbortController | undefined
  #unlogged = 0
  #lastError: Error | undefined

  /** Logs losses of one kind. The clock measures the minute between two lines. */
  constructor(warner: Warner, clock: Clock, kind: LossKind) {
    this.#warner = warner
    this.#clock = clock
    this.#kind = kind
  }

  /** Reports losses and their cause. */
  report(error: Error, losses = 1): void {
    this.#unlogged += losses
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
    const { code, textOf, advice } = this.#kind
    const lost = textOf(this.#unlogged)
    this.#unlogged = 0
    this.#lastError = undefined
    this.#warner.say(
      "warn",
      code,
      `${lost}: ${sentenceOf(error.message)} ${advice} Such losses are logged at most once a minute.`,
      error,
    )
    return true
  }
}
