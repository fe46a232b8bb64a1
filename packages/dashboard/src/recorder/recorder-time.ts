import type { Clock } from "@sluice/core"
import { after, outsideRequests, soundTime, steadyClock } from "@sluice/core/kit"

/** For how long a second is kept, in milliseconds. */
const KEPT_MS = 50

/**
 * The time for recorders. Reading the time of the machine may cost more than recording a decision, so a second is read
 * once and kept for 50 ms. An idle process has no timer.
 */
export class RecorderTime {
  readonly #clock: Clock
  readonly #keptMs: number
  #second: number | undefined

  /** A second is kept for `keptMs`, or not at all for 0. */
  constructor(clock: Clock, keptMs: number = KEPT_MS) {
    this.#clock = clock
    this.#keptMs = keptMs
  }

  /** Returns the current time in epoch milliseconds, without fractions. */
  now(): number {
    return Math.floor(soundTime(this.#clock))
  }

  /** Returns the current second since the epoch. */
  second(): number {
    return this.#second ?? this.#read()
  }

  #read(): number {
    const second = Math.floor(this.now() / 1_000)
    if (this.#keptMs === 0) return second
    this.#second = second
    outsideRequests(() => after(this.#keptMs, steadyClock, this.#forget))
    return second
  }

  readonly #forget = (): void => {
    this.#second = undefined
  }
}
