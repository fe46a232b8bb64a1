import { type Clock, soundTime, waitHeld } from "../../ground/clock.ts"

/** A timer goes no further. */
const LONGEST_TIMER_MS: number = 2 ** 31 - 1

/** Waits by a clock of the app's, until then or until the signal is aborted; and tells the time by it. */
export class Alarm {
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  now(): number {
    return soundTime(this.#clock)
  }

  /**
   * Calls back at an instant, by as many timers as it takes; or with why the clock cannot wait; or not at all, when the
   * signal is aborted.
   */
  at(untilMs: number, signal: AbortSignal, then: () => void, failed: (error: unknown) => void): void {
    // A timer drops fractions, and would be early.
    const ms = Math.ceil(untilMs - this.now())
    const isLong = ms > LONGEST_TIMER_MS
    const due = isLong ? () => this.at(untilMs, signal, then, failed) : then
    this.#wait(isLong ? LONGEST_TIMER_MS : Math.max(0, ms), signal).then(
      () => {
        if (!signal.aborted) due()
      },
      (error: unknown) => {
        if (!signal.aborted) failed(error)
      },
    )
  }

  async #wait(ms: number, signal: AbortSignal): Promise<void> {
    await (this.#clock.wait === undefined ? waitHeld(ms, signal) : this.#clock.wait(ms, signal))
  }
}
