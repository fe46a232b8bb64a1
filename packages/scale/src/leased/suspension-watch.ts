/** The wall clock may move this much further than the monotonic clock before the machine counts as suspended. */
const SUSPENDED_MS = 1_000

/**
 * Notices that the machine was suspended: its monotonic clock stood still, and the server's clock went on. Compares the
 * monotonic clock with the wall clock.
 */
export class SuspensionWatch {
  readonly #wallMs: () => number
  /** The smallest difference of both clocks so far, because the wall clock may be set back. */
  #aheadMs: number

  constructor(wallMs: () => number, nowMs: number) {
    this.#wallMs = wallMs
    this.#aheadMs = wallMs() - nowMs
  }

  /** Returns true if the machine was suspended since the start, or since the last call that returned true. */
  wasSuspended(nowMs: number): boolean {
    const aheadMs = this.#wallMs() - nowMs
    const isSuspended = aheadMs - this.#aheadMs > SUSPENDED_MS
    this.#aheadMs = isSuspended ? aheadMs : Math.min(aheadMs, this.#aheadMs)
    return isSuspended
  }
}
