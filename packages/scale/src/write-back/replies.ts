import { type Clock, StoreUnavailableError } from "@sluice/core"
import { type StoreCondition, storeErrorOf } from "@sluice/core/stores"
import { CHARGE_MS } from "../in-front/charger.ts"

/**
 * Number of counters that are settled together. If the shared store responds for none of them, one failure is
 * counted.
 */
export const SETTLED_TOGETHER = 64
/** Maximum number of counters whose settlement begins at the same time, because each takes about 10 us. */
export const MOST_AT_ONCE = 1_024
/**
 * Maximum number of counters that are being settled. It bounds the calls that pile up while a store does not respond.
 */
export const MOST_IN_FLIGHT: number = 4 * MOST_AT_ONCE
/**
 * Number of consecutive failed settlements after which results report that they were decided without the shared
 * counts.
 */
const FAILURES_UNTIL_DEGRADED = 3
/**
 * Time without a reply after which results report that they were decided without the shared counts. It is longer than
 * the timeout of a charge, so that the charge's error is known.
 */
const SILENT_UNTIL_DEGRADED_MS = CHARGE_MS + 200

const CONFIRMED: StoreCondition = {}
const FAILING: StoreCondition = { isRemembered: true }
const DEGRADED: StoreCondition = { isRemembered: true, isDegraded: true }

/**
 * The replies of the shared store to settlements, which determine the condition that decisions report and the number
 * of counters to settle.
 */
export class Replies {
  /** True if the latest failed settlement got no reply at all. */
  isSilent = false
  readonly #settleMs: number
  readonly #clock: Clock
  #failures = 0
  #failedMs = Number.NEGATIVE_INFINITY
  /**
   * Number of counters that are being settled, and the start of the time without a reply. Pauses do not count.
   */
  #settling = 0
  #silentSinceMs = 0
  #silentMs = 0
  /** The reported condition while the shared store fails, with the latest error. */
  #degraded: StoreCondition = DEGRADED

  constructor(settleMs: number, clock: Clock) {
    this.#settleMs = settleMs
    this.#clock = clock
  }

  get isFailing(): boolean {
    return this.#failures > 0
  }

  /** Number of counters whose settlement may begin now. While the shared store fails, only a few counters are tried. */
  get most(): number {
    if (!this.isFailing) return Math.min(MOST_AT_ONCE, MOST_IN_FLIGHT - this.#settling)
    if (this.#settling > 0) return 0
    // If a charge gets no reply, its units are lost, so try only a single counter.
    return this.isSilent ? 1 : SETTLED_TOGETHER
  }

  /**
   * The condition of the shared store, as results report it. Each request calls this getter, so it reads the clock
   * only if the time matters.
   */
  get condition(): StoreCondition {
    const silentMs = this.#settling > 0 ? this.#clock.now() - this.#silentSinceMs : this.#silentMs
    const isDegraded = silentMs >= SILENT_UNTIL_DEGRADED_MS || this.#failures >= FAILURES_UNTIL_DEGRADED
    return isDegraded ? this.#degraded : this.isFailing ? FAILING : CONFIRMED
  }

  /** Records that the settlement of this number of counters has begun. */
  began(counters: number, nowMs: number): void {
    if (this.#settling === 0) this.#silentSinceMs = nowMs - this.#silentMs
    this.#settling += counters
  }

  /** Records the outcome of a settlement that was sent at `sentMs`. */
  ended(counters: number, isAnswered: boolean, sentMs: number, nowMs: number): void {
    this.#settling -= counters
    if (isAnswered) this.#silentSinceMs = nowMs
    this.#silentMs = nowMs - this.#silentSinceMs
    if (isAnswered) this.#failures = 0
    // Settlements that were in flight together fail together, which counts as one failure.
    else if (this.#failures === 0 || sentMs >= this.#failedMs + this.#settleMs) {
      this.#failures++
      this.#failedMs = sentMs
    }
  }

  /** Records the error of a call. */
  failed(error: unknown): void {
    const { message, kind } = storeErrorOf(error)
    this.isSilent = kind === "timeout"
    const text = `The store decided without the shared counters: ${message}`
    if (this.#degraded.failure?.message === text) return
    const failure = new StoreUnavailableError(text, { kind: "unavailable", cause: error })
    this.#degraded = { ...DEGRADED, failure }
  }

  /** True if the store replied to any settlement after this time. */
  wereSince(sentMs: number): boolean {
    return this.#silentSinceMs > sentMs
  }
}
