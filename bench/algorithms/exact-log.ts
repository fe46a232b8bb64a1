/** Every admission of the last window, both ends of it included, to the millisecond: what the others are compared with. */
export class ExactLog {
  readonly #windowMs: number
  readonly #admittedMs: Float64Array
  /** Those that have gone, and those that have come, since the start. */
  #gone = 0
  #come = 0

  /** @param most as many as may come in one window and a millisecond. */
  constructor(windowMs: number, most: number) {
    this.#windowMs = windowMs
    this.#admittedMs = new Float64Array(most)
  }

  /** Admissions of the window that ends now. */
  count(nowMs: number): number {
    const size = this.#admittedMs.length
    while (
      this.#gone < this.#come &&
      (this.#admittedMs[this.#gone % size] as number) < nowMs - this.#windowMs
    )
      this.#gone++
    return this.#come - this.#gone
  }

  /** Throws when there are more than the log has room for. */
  add(nowMs: number): void {
    if (this.count(nowMs) >= this.#admittedMs.length) throw new Error("The exact log is full")
    this.#admittedMs[this.#come++ % this.#admittedMs.length] = nowMs
  }
}
