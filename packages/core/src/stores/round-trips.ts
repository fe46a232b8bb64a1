/** Number of replies that are remembered: enough to distinguish one slow moment from a distant server. */
const KEPT = 64

/** The durations of a server's last replies, including replies after the deadline. */
export class RoundTrips {
  readonly #ms = new Float64Array(KEPT)
  #count = 0

  add(ms: number): void {
    this.#ms[this.#count++ % KEPT] = ms
  }

  /** Durations in milliseconds, in any order. */
  get recent(): readonly number[] {
    return [...this.#ms.subarray(0, Math.min(this.#count, KEPT))]
  }
}
