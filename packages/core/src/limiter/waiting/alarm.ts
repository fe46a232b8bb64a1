import { type Clock, soundTime, waitHeld } from "../../ground/clock.ts"

/** The longest time that a timer can wait. */
const LONGEST_TIMER_MS: number = 2 ** 31 - 1

/** Why a timer is stopped. Without a reason, each abort would make an error with a stack, which takes longer than all else here. */
const NOT_NEEDED = new Error("The timer is not needed.")

/** Tells the time, and waits, by a clock of the app's. */
export class Alarm {
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  now(): number {
    return soundTime(this.#clock)
  }

  /** Calls `then` at an instant, or `failed` if the clock cannot wait. Returns a function that stops this. */
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

  /** Waits by as many timers as it takes. */
  async #wait(untilMs: number, signal: AbortSignal): Promise<void> {
    // A timer drops fractions, and would be early.
    const ms = Math.max(0, Math.ceil(untilMs - this.now()))
    const nextMs = Math.min(ms, LONGEST_TIMER_MS)
    await (this.#clock.wait === undefined ? waitHeld(nextMs, signal) : this.#clock.wait(nextMs, signal))
    if (ms > nextMs && !signal.aborted) await this.#wait(untilMs, signal)
  }
}
