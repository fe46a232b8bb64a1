/** Bounds the requests that are in flight at a time. */
export class InFlight {
  readonly #most: number
  #count = 0

  /** `most` is the number of requests that may be in flight together. */
  constructor(most: number) {
    this.#most = most
  }

  /** Counts the requests of a call, and returns whether they fit. A call that comes alone always does. */
  enter(requests: number): boolean {
    if (this.#count > 0 && this.#count + requests > this.#most) return false
    this.#count += requests
    return true
  }

  /** Ends a call that entered with as many requests. */
  leave(requests: number): void {
    this.#count -= requests
  }
}
