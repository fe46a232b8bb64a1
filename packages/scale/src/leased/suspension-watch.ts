/** The wall clock may move this much further than the monotonic clock before the machine counts as suspended. */
const SUSPENDED_MS = 1_000

/**
 * Detects that the machine was suspended, by comparing the monotonic clock with the wall clock. During a suspension,
 * the monotonic clock stops, and the server's clock advances.
 */
export class SuspensionWatch {
  readonly #wallMs: () => number
  /** The smallest difference between the clocks so far. It can shrink, because the wall clock may be set back. */
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
