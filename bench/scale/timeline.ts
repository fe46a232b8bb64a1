/** The start of all simulations in epoch milliseconds. Windows of a minute begin here. */
export const START_MS: number = Date.UTC(2024, 0, 1)

/** Number of steps of simulated time in a millisecond. */
const STEPS = 2
/** Number of promise hops between a store's reply and the code that waits for the whole request. */
const HOPS = 12

/**
 * Simulated time, in steps of half a millisecond. Events of the same step run in the order in which they were
 * scheduled.
 */
export class Timeline {
  #step = START_MS * STEPS
  readonly #events = new Map<number, (() => void)[]>()

  /** The simulated time in epoch milliseconds. */
  get nowMs(): number {
    return this.#step / STEPS
  }

  /** Schedules an event `ms` milliseconds from now, in a later step. */
  after(ms: number, run: () => void): void {
    const step = this.#step + Math.max(1, Math.ceil(ms * STEPS))
    const events = this.#events.get(step)
    if (events === undefined) this.#events.set(step, [run])
    else events.push(run)
  }

  /** Runs the work every `everyMs`. The first run is after the share `phase` of this interval. */
  every(everyMs: number, phase: number, work: () => void): void {
    const run = (): void => {
      work()
      this.after(everyMs, run)
    }
    this.after(phase * everyMs, run)
  }

  /**
   * Advances the time, and runs all events that are due by then. After each step, waits until all pending promise
   * callbacks have run.
   */
  async until(ms: number): Promise<void> {
    while (this.#step < ms * STEPS) {
      this.#step++
      const events = this.#events.get(this.#step)
      if (events === undefined) continue
      this.#events.delete(this.#step)
      for (const run of events) run()
      for (let hop = 0; hop < HOPS; hop++) await undefined
    }
  }
}
