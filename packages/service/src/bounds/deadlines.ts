/**
 * Maximum number of expired deadlines to process in one turn of the event loop. Thousands of deadlines may expire at
 * the same time.
 */
const MOST_AT_ONCE = 32

/** An operation with a timeout. Only DeadlineQueue reads and writes `earlier` and `later`. */
export abstract class Deadline {
  sinceMs = 0
  isRunning = false
  earlier: Deadline | undefined
  later: Deadline | undefined

  /** Called after the deadline has expired and stopped. */
  abstract onLate(): void
}

/** A deadline that calls a function when it expires. */
export class CallbackDeadline extends Deadline {
  override readonly onLate: () => void

  constructor(onLate: () => void) {
    super()
    this.onLate = onLate
  }
}

/**
 * Ends operations that take longer than a fixed time. All deadlines have the same timeout, so they expire in the order
 * of their start, and one timer serves all of them.
 *
 * The list is intrusive. A Map whose entries are added and deleted for a long time would delay their garbage
 * collection (see renewed-streams.ts).
 */
export class DeadlineQueue {
  readonly #limitMs: number
  #first: Deadline | undefined
  #last: Deadline | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(limitMs: number) {
    this.#limitMs = limitMs
  }

  /** Starts a deadline that is not running. */
  start(deadline: Deadline): void {
    deadline.sinceMs = performance.now()
    deadline.isRunning = true
    const last = this.#last
    deadline.earlier = last
    if (last === undefined) this.#first = deadline
    else last.later = deadline
    this.#last = deadline
    this.#timer ??= setTimeout(() => this.#endLate(), this.#limitMs).unref()
  }

  /** Stops a deadline. A no-op if the deadline is not running. */
  stop(deadline: Deadline): void {
    if (!deadline.isRunning) return
    deadline.isRunning = false
    const { earlier, later } = deadline
    if (earlier === undefined) this.#first = later
    else earlier.later = later
    if (later === undefined) this.#last = earlier
    else later.earlier = earlier
    // Clear the links. Otherwise a stopped deadline would keep its former neighbors in memory.
    deadline.earlier = undefined
    deadline.later = undefined
  }

  /** Returns the deadline that has run for the longest time. */
  get first(): Deadline | undefined {
    return this.#first
  }

  /** Stops the timer. */
  close(): void {
    clearTimeout(this.#timer)
  }

  #endLate(): void {
    const nowMs = performance.now()
    this.#timer = undefined
    let ended = 0
    for (let next = this.#first; next !== undefined; next = this.#first) {
      const leftMs = next.sinceMs + this.#limitMs - nowMs
      if (leftMs > 0 || ++ended > MOST_AT_ONCE) {
        this.#timer = setTimeout(() => this.#endLate(), leftMs).unref()
        return
      }
      this.stop(next)
      next.onLate()
    }
  }
}
