/** Replies that are remembered: enough to tell one slow moment from a server that is far away. */
const KEPT = 64

/** How long the last replies of a server took, those included that came after the deadline. */
export class RoundTrips {
  readonly #ms = new Float64Array(KEPT)
  #count = 0

  add(ms: number): void {
    this.#ms[this.#count++ % KEPT] = ms
  }

  /** In milliseconds, in no particular order. */
  get recent(): readonly number[] {
    return [...this.#ms.subarray(0, Math.min(this.#count, KEPT))]
  }
}
