import { type Clock, soundTime, waitHeld } from "../../ground/clock.ts"

/** The longest delay of a timer, in milliseconds. */
const LONGEST_TIMER_MS: number = 2 ** 31 - 1

/** The reason to stop a timer. Without a reason, each abort would create an error with a stack, which is slow. */
const NOT_NEEDED = new Error("The timer is not needed.")

/** Returns the time and waits by the limiter's clock. */
export class Alarm {
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  now(): number {
    return soundTime(this.#clock)
  }

  /** Calls `then` at the given time, or `failed` if the clock cannot wait. Returns a function that cancels the call. */
  at(untilMs: number, then: () => void, failed: (error: unknown) => void): () => void {
    const stopping = new AbortController()
    this.#wait(untilMs, stopping.signal).then(
      () => {
        if (!stopping.signal.aborted) then()
      },
      (error: unknown) => {
        if (!stopping.signal.aborted) failed(error)
      },
    )
    return () => stopping.abort(NOT_NEEDED)
  }

  /** Waits with as many timers as necessary. */
  async #wait(untilMs: number, signal: AbortSignal): Promise<void> {
    // Timers drop fractions, so round up: otherwise the timer would fire early.
    const ms = Math.max(0, Math.ceil(untilMs - this.now()))
    const nextMs = Math.min(ms, LONGEST_TIMER_MS)
    await (this.#clock.wait === undefined ? waitHeld(nextMs, signal) : this.#clock.wait(nextMs, signal))
    if (ms > nextMs && !signal.aborted) await this.#wait(untilMs, signal)
  }
}
