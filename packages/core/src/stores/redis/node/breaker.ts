/** Failures in a row after which nobody waits for the server any more. */
const FAILURES_TO_OPEN = 5
const FIRST_PROBE_MS = 100
const LAST_PROBE_MS = 1_000

/** Sets a timer outside of the request that happens to cause it. */
export type SetTimer = (callback: () => void, ms: number) => NodeJS.Timeout

/**
 * A circuit breaker for one Redis server: open after some failures in a row, closed by the first answer. While it is
 * open a single probe at a time asks whether the server is back, soon at first, then once a second.
 */
export class Breaker {
  readonly #probe: () => Promise<void>
  readonly #setTimer: SetTimer
  #failures = 0
  #isOpen = false
  #isStopped = false
  /** Number of the latest probe: the end of an earlier one leads to no other. */
  #attempt = 0
  /** Since when that probe is on its way; never while it is still to be sent. */
  #probedAtMs = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined

  /**
   * `probe` resolves when the server answers in time and rejects when it does not; it may stay silent as long as the
   * server.
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

  /** Something has happened that makes an answer likely: probes at once. */
  hurry(): void {
    if (!this.#isOpen) return
    // One that is older may have been lost with its connection.
    if (performance.now() - this.#probedAtMs < LAST_PROBE_MS) return
    this.#probeIn(0)
  }

  /** Closes it without an answer, for good: it opens no more, and there are no more probes. */
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
    // A server that is gone keeps no process alive.
    this.#timer.unref()
  }
}
