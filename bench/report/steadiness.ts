/** Of two looks, the slower one's time beyond which a machine is told to be busy, times the quicker one's. */
const BUSY = 1.5
const STEPS = 4_000_000

/**
 * Whether a machine was as fast at one time as at another: a piece of work that is always the same is timed again and again.
 * The load that a system tells leaves out neighbours who share the machine's cores; this does not.
 */
export class Steadiness {
  readonly #tookMs: number[] = []

  constructor() {
    // Compiled before it is timed.
    this.look()
    this.#tookMs.length = 0
  }

  look(): void {
    const begunMs = performance.now()
    let state = 1
    for (let step = 0; step < STEPS; step++) state = (Math.imul(state, 0x9e37_79b1) ^ step) >>> 0
    const tookMs = performance.now() - begunMs
    // The result is used, so that the loop is not taken for dead.
    if (state >= 0) this.#tookMs.push(tookMs)
  }

  /** The longest time of the piece of work, times the shortest. */
  get times(): number {
    return Math.max(...this.#tookMs) / Math.min(...this.#tookMs)
  }

  /** What a reader of the figures has to know. */
  get says(): string {
    const took = `The same piece of work took ${this.times.toFixed(2)} times as long at one time as at another`
    return this.times > BUSY
      ? `${took}: the machine was BUSY. Trust ratios within a workload, distrust the clock, and run it again.`
      : `${took}: the machine was steady.`
  }
}
