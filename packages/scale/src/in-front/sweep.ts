import type { Clock } from "@sluice/core"
import { outsideRequests, steadyClock, waitOf } from "@sluice/core/kit"

/** Calls back when the earliest of the planned times has come. Its timer does not keep the process alive. */
export class Sweep {
  readonly #clock: Clock
  readonly #run: (nowMs: number) => void
  readonly #pauseMs: number
  #ranMs = Number.NEGATIVE_INFINITY
  #dueMs = Number.POSITIVE_INFINITY
  #waiting: AbortController | undefined

  /** `pauseMs` is the minimum time between two calls. */
  constructor(clock: Clock, pauseMs: number, run: (nowMs: number) => void) {
    this.#clock = clock
    this.#pauseMs = pauseMs
    this.#run = run
  }

  /** Plans a call for this time of the clock, unless an earlier call is already planned. */
  plan(earliestMs: number, nowMs: number): void {
    const dueMs = Math.max(earliestMs, this.#ranMs + this.#pauseMs)
    if (!(dueMs < this.#dueMs)) return
    this.stop()
    this.#dueMs = dueMs
    const waiting = new AbortController()
    this.#waiting = waiting
    // Set the timer outside requests, because it would otherwise keep the AsyncLocalStorage context of a request
    // alive.
    outsideRequests(() => void this.#wait(dueMs, Math.max(1, Math.ceil(dueMs - nowMs)), waiting.signal))
  }

  stop(): void {
    this.#waiting?.abort()
    this.#waiting = undefined
    this.#dueMs = Number.POSITIVE_INFINITY
  }

  async #wait(dueMs: number, ms: number, signal: AbortSignal): Promise<void> {
    // Try the real clock as well. Otherwise, a clock that cannot wait, or that wakes up early, would cause an endless
    // loop without a pause.
    for (const wait of [waitOf(this.#clock), waitOf(steadyClock)]) {
      try {
        await wait(ms, signal)
      } catch {
        // The wait failed because an earlier time was planned, the store was closed, or the clock cannot wait.
      }
      if (signal.aborted) return
      if (this.#clock.now() >= dueMs) break
    }
    this.stop()
    this.#ranMs = this.#clock.now()
    this.#run(this.#ranMs)
  }
}
