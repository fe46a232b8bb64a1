/**
 * A number of clients, with the half-width of its 95% confidence interval. The half-width is 0 if the number is
 * exact.
 */
export interface ClientEstimate {
  readonly clients: number
  readonly error: number
}

/**
 * The number of clients whose peak is above each limit. A limit refuses exactly these clients, because a counter does
 * not depend on the limit until the first refusal.
 */
export class PeakCurve {
  /** All distinct peaks in ascending order. */
  readonly peaks: readonly number[]
  readonly #factor: number
  /** At each index, the number of clients with a larger peak, separately for exact and for sampled clients. */
  readonly #exactAbove: readonly number[]
  readonly #sampledAbove: readonly number[]
  readonly #exact: number
  readonly #sampled: number

  /** `exact` and `sampled` count clients by peak. A sampled client represents `factor` clients. */
  constructor(
    exact: ReadonlyMap<number, number>,
    sampled: ReadonlyMap<number, number> = new Map(),
    factor = 1,
  ) {
    this.#factor = factor
    this.peaks = [...new Set([...exact.keys(), ...sampled.keys()])].sort((one, other) => one - other)
    this.#exactAbove = sumsAbove(this.peaks, exact)
    this.#sampledAbove = sumsAbove(this.peaks, sampled)
    this.#exact = total(exact)
    this.#sampled = total(sampled)
  }

  /** All clients. */
  get all(): ClientEstimate {
    return this.#estimate(this.#exact, this.#sampled)
  }

  get highest(): number {
    return this.peaks.at(-1) ?? 0
  }

  /** Returns the number of clients that a limit refuses. */
  above(limit: number): ClientEstimate {
    const at = this.#indexAbove(limit) - 1
    if (at < 0) return this.all
    return this.#estimate(this.#exactAbove[at] as number, this.#sampledAbove[at] as number)
  }

  /** Returns the smallest peak above a limit; undefined if no peak is higher. */
  nextAbove(limit: number): number | undefined {
    return this.peaks[this.#indexAbove(limit)]
  }

  /** Returns the smallest limit that refuses at most `most` clients. */
  leastLimit(most: number): number {
    if (this.all.clients <= most) return 1
    const found = this.peaks.find((peak) => this.above(peak).clients <= most)
    return Math.max(1, found ?? 1)
  }

  /** Returns the index of the first peak above a limit. */
  #indexAbove(limit: number): number {
    let low = 0
    let high = this.peaks.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.peaks[middle] as number) <= limit) low = middle + 1
      else high = middle
    }
    return low
  }

  #estimate(exact: number, sampled: number): ClientEstimate {
    const factor = this.#factor
    return { clients: exact + factor * sampled, error: samplingError(sampled, factor) }
  }
}

/** Half-width of a 95% confidence interval, in standard deviations. */
const Z = 1.96

/**
 * Returns the error of a number of clients that was estimated from `sampled` clients, each of which represents
 * `factor` clients. Adds two clients, as in the interval of Agresti and Coull. Otherwise, the error of very small
 * numbers would be too small.
 */
export function samplingError(sampled: number, factor: number): number {
  return factor === 1 ? 0 : Z * Math.sqrt((sampled + 2) * factor * (factor - 1))
}

/** Returns an array with the number of clients that have a larger peak, at the index of each peak. */
function sumsAbove(peaks: readonly number[], counts: ReadonlyMap<number, number>): readonly number[] {
  const sums = Array<number>(peaks.length).fill(0)
  for (let at = peaks.length - 2; at >= 0; at--)
    sums[at] = (sums[at + 1] as number) + (counts.get(peaks[at + 1] as number) ?? 0)
  return sums
}

function total(counts: ReadonlyMap<number, number>): number {
  let sum = 0
  for (const count of counts.values()) sum += count
  return sum
}
