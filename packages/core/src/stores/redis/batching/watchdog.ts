import { setTimer } from "../../../ground/time.ts"

/**
 * One timer for all who wait, set for the first deadline among them; deadlines are instants of the monotonic clock.
 * It keeps the process alive only while somebody waits.
 */
export class Watchdog {
  readonly #onDue: () => void
  #timer: NodeJS.Timeout | undefined
  #dueMs = Number.POSITIVE_INFINITY
  #isStopped = false

  /** `onDue` is called at the deadline or a little earlier, and watches for the next one itself. */
  constructor(onDue: () => void) {
    this.#onDue = onDue
  }

  /** Somebody waits until then. */
  watch(deadlineMs: number): void {
    if (this.#timer !== undefined) {
      this.#timer.ref()
      if (deadlineMs >= this.#dueMs) return
      clearTimeout(this.#timer)
    }
    this.#dueMs = deadlineMs
    this.#timer = setTimer(this.#ring, Math.max(0, Math.ceil(deadlineMs - performance.now())))
  }

  /** Nobody waits. The timer stays, as setting one is dearer than letting one ring in vain. */
  rest(): void {
    this.#timer?.unref()
  }

  /** Ends it for good. */
  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  readonly #ring = (): void => {
    this.#timer = undefined
    this.#dueMs = Number.POSITIVE_INFINITY
    // A stall of our own event loop is not a failure of Redis: replies that have arrived are read first.
    setImmediate(() => {
      if (!this.#isStopped) this.#onDue()
    })
  }
}
