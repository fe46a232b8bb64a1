/**
 * Never lets more than `limit` calls leave in any window, whatever the responses contain. To do so, it stores the
 * times of the latest calls.
 */
export class OwnCeiling {
  readonly #limit: number
  readonly #windowMs: number
  /** The times of the latest calls, in a ring buffer that grows to `limit`. */
  readonly #sentAt: number[] = []
  #oldest = 0

  constructor(limit: number, windowMs: number) {
    this.#limit = limit
    this.#windowMs = windowMs
  }

  /**
   * Returns the minimum wait in milliseconds of a call that has `place` calls before it; 0 if the call may leave now.
   */
  waitMs(nowMs: number, place = 0): number {
    // The call leaves when the window of the n-th oldest call has ended, counting from 0. If n exceeds the stored
    // calls, it also waits for calls before it in the line.
    const nth = place + this.#sentAt.length - this.#limit
    if (nth < 0) return 0
    const leftAt = this.#sentAt[(this.#oldest + nth) % this.#limit] ?? nowMs
    return Math.max(0, leftAt + this.#windowMs * Math.floor(1 + nth / this.#limit) - nowMs)
  }

  count(nowMs: number): void {
    if (this.#sentAt.length < this.#limit) this.#sentAt.push(nowMs)
    else {
      this.#sentAt[this.#oldest] = nowMs
      this.#oldest = (this.#oldest + 1) % this.#limit
    }
  }

  /** True if all calls are so old that they no longer count. */
  isEmpty(nowMs: number): boolean {
    const newest = this.#sentAt.at(this.#oldest - 1)
    return newest === undefined || newest + this.#windowMs <= nowMs
  }
}
