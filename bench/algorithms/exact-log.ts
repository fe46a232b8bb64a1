/**
 * A log of every admission in the last window, both ends included, to the millisecond. Other algorithms are compared
 * with this log.
 */
export class ExactLog {
  readonly #windowMs: number
  readonly #admittedMs: Float64Array
  /** Numbers of admissions that were dropped from the log and added to it since the start. */
  #gone = 0
  #come = 0

  /** @param most the most admissions that can fall into one window plus a millisecond. */
  constructor(windowMs: number, most: number) {
    this.#windowMs = windowMs
    this.#admittedMs = new Float64Array(most)
  }

  /** Returns the number of admissions in the window that ends now. */
  count(nowMs: number): number {
    const size = this.#admittedMs.length
    while (
      this.#gone < this.#come &&
      (this.#admittedMs[this.#gone % size] as number) < nowMs - this.#windowMs
    )
      this.#gone++
    return this.#come - this.#gone
  }

  /** Adds an admission. Throws if the log is full. */
  add(nowMs: number): void {
    if (this.count(nowMs) >= this.#admittedMs.length) throw new Error("The exact log is full")
    this.#admittedMs[this.#come++ % this.#admittedMs.length] = nowMs
  }
}
