import { setTimer } from "@sluice/core/stores"

/**
 * A single timer for all waiting requests, set for the earliest deadline. Deadlines are instants of the monotonic
 * clock. The timer keeps the process alive only while a request waits.
 */
export class Watchdog {
  readonly #onDue: () => void
  #timer: NodeJS.Timeout | undefined
  #dueMs = Number.POSITIVE_INFINITY
  #isStopped = false

  /** `onDue` is called at the deadline or slightly earlier. `onDue` must call `watch` for the next deadline. */
  constructor(onDue: () => void) {
    this.#onDue = onDue
  }

  /** Sets the timer for a request that waits until this deadline. Infinity means that no request waits. */
  watch(deadlineMs: number): void {
    if (deadlineMs === Number.POSITIVE_INFINITY) return
    if (this.#timer !== undefined) {
      this.#timer.ref()
      if (deadlineMs >= this.#dueMs) return
      clearTimeout(this.#timer)
    }
    this.#dueMs = deadlineMs
    this.#timer = setTimer(this.#ring, Math.max(0, Math.ceil(deadlineMs - performance.now())))
  }

  /**
   * Lets the process exit, because no request waits. Does not clear the timer, because setting a new timer costs more
   * than letting this one fire without effect.
   */
  rest(): void {
    this.#timer?.unref()
  }

  /** Stops the watchdog permanently. */
  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  readonly #ring = (): void => {
    this.#timer = undefined
    this.#dueMs = Number.POSITIVE_INFINITY
    // First read the replies that have arrived, because a stall of this process's event loop is not a failure of
    // Redis.
    setImmediate(() => {
      if (!this.#isStopped) this.#onDue()
    })
  }
}
