import type { Timeline } from "./result.ts"

/** Maximum number of steps in a timeline. This is enough for a plot as wide as a screen. */
const MOST_STEPS = 600
const STEPS_MS = [
  ...[1_000, 5_000, 10_000, 30_000, 60_000, 300_000, 600_000, 1_800_000],
  ...[3_600_000, 10_800_000, 21_600_000, 43_200_000, 86_400_000],
]

/** The times of requests, counted in steps. The steps become longer with the log, so the memory is bounded. */
export class TimelineCounts {
  #stepMs = STEPS_MS[0] as number
  /** Number of the first step since the epoch. Undefined until the first request. */
  #first: number | undefined
  readonly #series: number[][]

  /** `series` is the number of counts in each step. */
  constructor(series: number) {
    this.#series = Array.from({ length: series }, () => [])
  }

  /** Returns the index of the step of a request. The index is valid until the next call. Times must not decrease. */
  stepOf(atMs: number): number {
    this.#first ??= Math.floor(atMs / this.#stepMs)
    let step = Math.floor(atMs / this.#stepMs) - this.#first
    while (step >= MOST_STEPS) {
      this.#coarsen()
      step = Math.floor(atMs / this.#stepMs) - this.#first
    }
    return step
  }

  add(series: number, step: number): void {
    const counts = this.#series[series] as number[]
    while (counts.length <= step) counts.push(0)
    counts[step] = (counts[step] as number) + 1
  }

  /**
   * Returns the timeline. The first two series are the admitted and the refused requests; the others belong to
   * `names`.
   */
  result(names: readonly string[]): Timeline {
    const length = Math.max(...this.#series.map((counts) => counts.length))
    const filled = this.#series.map((counts) => [...counts, ...Array<number>(length - counts.length).fill(0)])
    const [admitted = [], refused = [], ...others] = filled
    return {
      from: (this.#first ?? 0) * this.#stepMs,
      stepMs: this.#stepMs,
      admitted,
      refused,
      refusedBy: Object.fromEntries(names.map((name, at) => [name, others[at] as number[]])),
    }
  }

  #coarsen(): void {
    const before = this.#stepMs
    const at = STEPS_MS.indexOf(before)
    // After the listed steps, each step is twice as long as the previous one.
    const after = (at === -1 ? undefined : STEPS_MS[at + 1]) ?? 2 * before
    const first = Math.floor(((this.#first as number) * before) / after)
    for (const counts of this.#series) {
      const summed: number[] = []
      counts.forEach((count, step) => {
        const to = Math.floor((((this.#first as number) + step) * before) / after) - first
        while (summed.length <= to) summed.push(0)
        summed[to] = (summed[to] as number) + count
      })
      counts.splice(0, counts.length, ...summed)
    }
    this.#stepMs = after
    this.#first = first
  }
}
