import { setTimer } from "@sluice/core/stores"

/** Consecutive failures after which the breaker opens. */
const FAILURES_TO_OPEN = 5
const FIRST_PROBE_MS = 100
const LAST_PROBE_MS = 1_000

/**
 * A circuit breaker for one Redis server. The circuit breaker opens after several consecutive failures and closes at
 * the first reply. While the breaker is open, one probe at a time checks whether the server responds: after 100 ms at
 * first, later once per second.
 */
export class Breaker {
  readonly #probe: () => Promise<void>
  #failures = 0
  #isOpen = false
  #isStopped = false
  /** Number of the latest probe. If an earlier probe fails, it does not schedule another probe. */
  #attempt = 0
  #timer: NodeJS.Timeout | undefined
  readonly #isByRequests: boolean
  /** When the next request starts a probe. Infinity if a timer starts it. */
  #probeAtMs = Number.POSITIVE_INFINITY
  #probeDelayMs = FIRST_PROBE_MS

  /**
   * `probe` resolves if the server responds in time, and otherwise rejects. Its promise may stay pending until the
   * server responds. If `isByRequests`, the first request after the delay starts the probe instead of a timer, but does
   * not wait for it.
   */
  constructor(probe: () => Promise<void>, isByRequests = false) {
    this.#probe = probe
    this.#isByRequests = isByRequests
  }

  get isOpen(): boolean {
    if (this.#isOpen && performance.now() >= this.#probeAtMs) {
      // Do not wait for the outcome, because the request may end before.
      this.#probeIn(Math.min(2 * this.#probeDelayMs, LAST_PROBE_MS))
      this.#probe().then(
        () => this.succeeded(),
        () => undefined,
      )
    }
    return this.#isOpen
  }

  get isStopped(): boolean {
    return this.#isStopped
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

  /** Closes the breaker permanently, even without a reply. After `stop`, the breaker never opens or probes again. */
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
    if (this.#isByRequests) {
      this.#probeAtMs = performance.now() + ms
      this.#probeDelayMs = ms
      return
    }
    const attempt = ++this.#attempt
    this.#timer = setTimer(() => {
      this.#probe().then(
        () => this.succeeded(),
        () => {
          if (attempt === this.#attempt) this.#probeIn(Math.min(2 * ms, LAST_PROBE_MS))
        },
      )
    }, ms)
    // Unref the timer, because an unavailable server must not keep the process alive.
    this.#timer.unref()
  }
}
