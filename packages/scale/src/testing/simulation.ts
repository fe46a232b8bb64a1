import type { Clock } from "@sluice/core"

/** Maximum number of chained promises between the reply of a store and the code that awaits the whole request. */
const HOPS = 12

interface Event {
  readonly atMs: number
  readonly nth: number
  readonly run: () => void
}

/**
 * Simulated time. Events happen one after the other, at fractions of milliseconds. Before the next event, all promises
 * that can settle have settled.
 */
export class Simulation {
  nowMs: number
  #events: Event[] = []
  #made = 0
  #nth = 0

  constructor(nowMs: number) {
    this.nowMs = nowMs
  }

  /** Returns a number that is larger than all numbers returned before, to record the order of events. */
  nth(): number {
    return this.#nth++
  }

  after(ms: number, run: () => void): void {
    this.#events.push({ atMs: this.nowMs + ms, nth: this.#made++, run })
  }

  /** Runs all events of the next `ms` milliseconds. */
  async pass(ms: number): Promise<void> {
    const untilMs = this.nowMs + ms
    await settle()
    for (;;) {
      const event = this.#first()
      if (event === undefined || event.atMs > untilMs) break
      this.#events.splice(this.#events.indexOf(event), 1)
      this.nowMs = Math.max(this.nowMs, event.atMs)
      event.run()
      await settle()
    }
    this.nowMs = untilMs
  }

  #first(): Event | undefined {
    let first = this.#events[0]
    for (const event of this.#events) {
      if (first === undefined) first = event
      const earlier = event.atMs - first.atMs
      if (earlier < 0 || (earlier === 0 && event.nth < first.nth)) first = event
    }
    return first
  }

  /** Returns a monotonic clock that is ahead of the simulated time by a constant. */
  clock(aheadMs: number): Clock {
    return {
      now: () => this.nowMs + aheadMs,
      wait: (ms, signal) =>
        new Promise((resolve, reject) => {
          signal?.addEventListener("abort", () => reject(signal.reason))
          this.after(ms, () => resolve())
        }),
    }
  }
}

async function settle(): Promise<void> {
  for (let i = 0; i < HOPS; i++) await undefined
}
