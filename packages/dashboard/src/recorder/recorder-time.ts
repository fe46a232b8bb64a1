/** For how long a second is kept, in milliseconds. */
const KEPT_MS = 50

/**
 * The time for recorders. Reading the time of the machine may cost more than recording a decision, so a second is read
 * once and kept for 50 ms. An idle process has no timer.
 */
export class RecorderTime {
  readonly now: () => number
  readonly #keptMs: number
  #second: number | undefined
  #timer: NodeJS.Timeout | undefined

  /** `now` returns epoch milliseconds. A second is kept for `keptMs`, or not at all for 0. */
  constructor(now: () => number, keptMs: number = KEPT_MS) {
    this.now = now
    this.#keptMs = keptMs
  }

  /** Returns the current second since the epoch. */
  second(): number {
    return this.#second ?? this.#read()
  }

  #read(): number {
    const second = Math.floor(this.now() / 1_000)
    if (this.#keptMs === 0) return second
    this.#second = second
    this.#timer = this.#timer?.refresh() ?? setTimeout(this.#forget, this.#keptMs).unref()
    return second
  }

  readonly #forget = (): void => {
    this.#second = undefined
  }
}
