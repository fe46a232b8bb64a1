/** Units that were granted, by millisecond. */
export class Grants {
  readonly #startMs: number
  readonly #units: number[] = []
  #total = 0

  constructor(startMs: number) {
    this.#startMs = startMs
  }

  /** All units that were granted. */
  get total(): number {
    return this.#total
  }

  /** Adds units that were granted in the millisecond `atMs`. Grants may be added in any order. */
  add(atMs: number, units: number): void {
    const index = Math.floor(atMs - this.#startMs)
    while (this.#units.length <= index) this.#units.push(0)
    this.#units[index] = (this.#units[index] as number) + units
    this.#total += units
  }

  /**
   * Returns the most units in any window of this length, in whole milliseconds. With 2 units at 0 and 3 at 1,000, the
   * result is 3 for a window of 1,000 ms, and 5 for a window of 1,001 ms.
   */
  mostIn(windowMs: number): number {
    let sum = 0
    let most = 0
    for (let ms = 0; ms < this.#units.length; ms++) {
      sum += (this.#units[ms] as number) - (this.#units[ms - windowMs] ?? 0)
      most = Math.max(most, sum)
    }
    return most
  }
}
