/**
 * Number of replies that are remembered. This number is enough to distinguish one slow moment from a distant server.
 */
const KEPT = 64

/** The longest silence of a slow server, in milliseconds. A server that is silent for longer counts as gone. */
export const OUTAGE_MS = 1_000

/** The durations of a server's latest round trips, including replies after the deadline. */
export class RoundTrips {
  readonly #ms = new Float64Array(KEPT)
  #count = 0
  /**
   * When the latest outage ended. At that moment a server that was frozen replies to all earlier calls, and these
   * replies say nothing about its speed.
   */
  #backAtMs = Number.NEGATIVE_INFINITY

  /** Adds a reply that has just arrived. `sentAtMs` is the monotonic time at which the call was sent. */
  add(sentAtMs: number): void {
    const nowMs = performance.now()
    if (nowMs - sentAtMs > OUTAGE_MS) this.#backAtMs = nowMs
    if (sentAtMs >= this.#backAtMs) this.#ms[this.#count++ % KEPT] = nowMs - sentAtMs
  }

  /** The remembered durations in milliseconds, in any order. */
  get recent(): readonly number[] {
    return [...this.#ms.subarray(0, Math.min(this.#count, KEPT))]
  }
}
