/** Number of replies that are remembered: enough to distinguish one slow moment from a distant server. */
const KEPT = 64

/** A server that is silent for longer than this, in milliseconds, is not slow but gone. */
export const OUTAGE_MS = 1_000

/** The durations of a server's last replies, including replies after the deadline. */
export class RoundTrips {
  readonly #ms = new Float64Array(KEPT)
  #count = 0
  /**
   * When the last outage ended. A frozen server responds to all earlier calls then, which shows nothing about its
   * speed.
   */
  #backAtMs = Number.NEGATIVE_INFINITY

  /** Adds a reply that has just arrived. `sentAtMs` is when its call was sent, by the monotonic clock. */
  add(sentAtMs: number): void {
    const nowMs = performance.now()
    if (nowMs - sentAtMs > OUTAGE_MS) this.#backAtMs = nowMs
    if (sentAtMs >= this.#backAtMs) this.#ms[this.#count++ % KEPT] = nowMs - sentAtMs
  }

  /** Durations in milliseconds, in any order. */
  get recent(): readonly number[] {
    return [...this.#ms.subarray(0, Math.min(this.#count, KEPT))]
  }
}
