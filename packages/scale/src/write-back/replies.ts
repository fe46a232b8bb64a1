import { type Clock, StoreUnavailableError } from "@sluice/core"
import { type StoreCondition, storeErrorOf } from "@sluice/core/stores"
import { CHARGE_MS } from "../in-front/charger.ts"

/** Number of counters that are settled together. If the shared store responds for none of them, that is one failure. */
export const SETTLED_TOGETHER = 64
/** Most counters whose settling begins at the same time, because each takes about 10 us. */
export const MOST_AT_ONCE = 1_024
/** Most counters that are being settled. A store that does not respond must not collect more calls than this. */
export const MOST_IN_FLIGHT: number = 4 * MOST_AT_ONCE
/** Number of settlings in a row that fail before results report that they were decided without the shared counts. */
const FAILURES_UNTIL_DEGRADED = 3
/**
 * Settlings may wait this long for a reply before results report that. Longer than a charge may take, to give its
 * error.
 */
const SILENT_UNTIL_DEGRADED_MS = CHARGE_MS + 200

const CONFIRMED: StoreCondition = {}
const FAILING: StoreCondition = { isRemembered: true }
const DEGRADED: StoreCondition = { isRemembered: true, isDegraded: true }

/** Whether the shared store responds to settlings: what decisions report about it, and how many counters it gets. */
export class Replies {
  /** True if the last settling that failed got no reply at all. */
  isSilent = false
  readonly #settleMs: number
  readonly #clock: Clock
  #failures = 0
  #failedMs = Number.NEGATIVE_INFINITY
  /**
   * Number of counters that are being settled, and since when there have been some without a reply. Pauses do not
   * count.
   */
  #settling = 0
  #silentSinceMs = 0
  #silentMs = 0
  /** With the last error, as long as the shared store fails. */
  #degraded: StoreCondition = DEGRADED

  constructor(settleMs: number, clock: Clock) {
    this.#settleMs = settleMs
    this.#clock = clock
  }

  get isFailing(): boolean {
    return this.#failures > 0
  }

  /** Number of counters whose settling may begin now. While the shared store fails, few are tried. */
  get most(): number {
    if (!this.isFailing) return Math.min(MOST_AT_ONCE, MOST_IN_FLIGHT - this.#settling)
    if (this.#settling > 0) return 0
    // The units of a charge without a reply are lost, so a single counter tries.
    return this.isSilent ? 1 : SETTLED_TOGETHER
  }

  /**
   * The condition of the shared store, as results report it. Each request reads it, so it reads the clock only if the
   * time matters.
   */
  get condition(): StoreCondition {
    const silentMs = this.#settling > 0 ? this.#clock.now() - this.#silentSinceMs : this.#silentMs
    const isDegraded = silentMs >= SILENT_UNTIL_DEGRADED_MS || this.#failures >= FAILURES_UNTIL_DEGRADED
    return isDegraded ? this.#degraded : this.isFailing ? FAILING : CONFIRMED
  }

  /** Notes that this number of counters is being settled. */
  began(counters: number, nowMs: number): void {
    if (this.#settling === 0) this.#silentSinceMs = nowMs - this.#silentMs
    this.#settling += counters
  }

  /** Notes the outcome of a settling that was sent at `sentMs`. */
  ended(counters: number, isAnswered: boolean, sentMs: number, nowMs: number): void {
    this.#settling -= counters
    if (isAnswered) this.#silentSinceMs = nowMs
    this.#silentMs = nowMs - this.#silentSinceMs
    if (isAnswered) this.#failures = 0
    // Settlings that were in flight together fail together, which is one failure.
    else if (this.#failures === 0 || sentMs >= this.#failedMs + this.#settleMs) {
      this.#failures++
      this.#failedMs = sentMs
    }
  }

  /** Notes the error of a call. */
  failed(error: unknown): void {
    const { message, kind } = storeErrorOf(error)
    this.isSilent = kind === "timeout"
    const text = `The store decided without the shared counters: ${message}`
    if (this.#degraded.failure?.message === text) return
    const failure = new StoreUnavailableError(text, { kind: "unavailable", cause: error })
    this.#degraded = { ...DEGRADED, failure }
  }

  /** Whether any settling was answered after this time. */
  wereSince(sentMs: number): boolean {
    return this.#silentSinceMs > sentMs
  }
}
