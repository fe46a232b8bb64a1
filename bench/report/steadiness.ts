/** The machine counts as busy if the slowest time exceeds the fastest by this factor. */
const BUSY = 1.5
const STEPS = 4_000_000

/**
 * A check for a constant speed of the machine, which times the same piece of work repeatedly. Unlike the system's load
 * average, it also notices other virtual machines on the same cores.
 */
export class Steadiness {
  readonly #tookMs: number[] = []

  constructor() {
    // Let V8 compile the code before it is timed.
    this.look()
    this.#tookMs.length = 0
  }

  look(): void {
    const begunMs = performance.now()
    let state = 1
    for (let step = 0; step < STEPS; step++) state = (Math.imul(state, 0x9e37_79b1) ^ step) >>> 0
    const tookMs = performance.now() - begunMs
    // Use the result, so that the compiler does not remove the loop.
    if (state >= 0) this.#tookMs.push(tookMs)
  }

  /** The longest time of the work, as a multiple of the shortest. */
  get times(): number {
    return Math.max(...this.#tookMs) / Math.min(...this.#tookMs)
  }

  /** A description of the result, for readers of the figures. */
  get says(): string {
    const took = `The slowest of several equal pieces of work took ${this.times.toFixed(2)} times as long as the fastest`
    return this.times > BUSY
      ? `${took}: the machine was BUSY. Trust only ratios within a workload, and run it again.`
      : `${took}: the machine was steady.`
  }
}
