/** Consecutive failures after which the breaker opens. */
const FAILURES_TO_OPEN = 5
const FIRST_PROBE_MS = 100
const LAST_PROBE_MS = 1_000

/** A function that sets a timer outside of the async context of the request that happens to cause it. */
export type SetTimer = (callback: () => void, ms: number) => NodeJS.Timeout

/**
 * A circuit breaker for one Redis server. It opens after several consecutive failures and closes at the first answer.
 * While it is open, one probe at a time checks whether the server is back: soon at first, then once per second.
 */
export class Breaker {
  readonly #probe: () => Promise<void>
  readonly #setTimer: SetTimer
  #failures = 0
  #isOpen = false
  #isStopped = false
  /** Number of the latest probe. An earlier probe that fails does not schedule another one. */
  #attempt = 0
  /** When the latest probe was sent; -Infinity while it is only scheduled. */
  #probedAtMs = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined

  /**
   * `probe` resolves if the server answers in time, otherwise rejects. It may stay pending until the server answers.
   */
  constructor(probe: () => Promise<void>, setTimer: SetTimer) {
    this.#probe = probe
    this.#setTimer = setTimer
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  succeeded(): void {
    this.#failures = 0
    if (this.#isOpen) this.#close()
  }

  failed(): void {
    this.#failures++
    if (this.#isOpen || this.#isStopped || this.#failures < FAILURES_TO_OPEN) return
    this.#isOpen = true
    this.#probeIn(FIRST_PROBE_MS)
  }

  /** Probes at once, because an answer has become likely. */
  hurry(): void {
    if (!this.#isOpen) return
    // A recent probe is enough. An older one may have been lost with its connection.
    if (performance.now() - this.#probedAtMs < LAST_PROBE_MS) return
    this.#probeIn(0)
  }

  /** Closes the breaker for good, without an answer. It never opens or probes again. */
  stop(): void {
    this.#isStopped = true
    this.#close()
  }

  #close(): void {
    this.#isOpen = false
    this.#attempt++
    clearTimeout(this.#timer)
  }

  #probeIn(ms: number): void {
    const attempt = ++this.#attempt
    this.#probedAtMs = Number.NEGATIVE_INFINITY
    clearTimeout(this.#timer)
    this.#timer = this.#setTimer(() => {
      this.#probedAtMs = performance.now()
      this.#probe().then(
        () => this.succeeded(),
        () => {
          if (attempt === this.#attempt) {
            this.#probeIn(Math.min(Math.max(2 * ms, FIRST_PROBE_MS), LAST_PROBE_MS))
          }
        },
      )
    }, ms)
    // An unavailable server must not keep the process alive.
    this.#timer.unref()
  }
}
