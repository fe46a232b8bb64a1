/** The units that requests in this process asked of a counter within T, whether or not they were granted. */
export class Demand {
  readonly #leaseMs: number
  #startedMs = Number.NEGATIVE_INFINITY
  #current = 0
  #previous = 0

  /** `leaseMs` is T in milliseconds. */
  constructor(leaseMs: number) {
    this.#leaseMs = leaseMs
  }

  /** Units of the current or the previous interval of T, whichever is larger. */
  get units(): number {
    return Math.max(this.#current, this.#previous)
  }

  /** The time when the current interval began, which is the time of the latest request to within T. */
  get startedMs(): number {
    return this.#startedMs
  }

  add(units: number, nowMs: number): void {
    const sinceMs = nowMs - this.#startedMs
    if (!(sinceMs >= 0 && sinceMs < this.#leaseMs)) {
      const isNext = sinceMs >= 0 && sinceMs < 2 * this.#leaseMs
      this.#previous = isNext ? this.#current : 0
      this.#current = 0
      this.#startedMs = isNext ? this.#startedMs + this.#leaseMs : nowMs
    }
    this.#current = Math.min(this.#current + units, Number.MAX_SAFE_INTEGER)
  }
}
