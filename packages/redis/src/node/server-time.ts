/** After this delay, a newer reply replaces an earlier, faster one, because clocks drift. */
const TRUSTED_MS = 10_000

/**
 * The time of a Redis server relative to this process's monotonic clock, learned from the times in its replies. The
 * estimate uses the fastest reply of the past 10 seconds. If a reply contradicts the estimate, the server's clock was
 * changed, and the estimate uses that reply.
 */
export class ServerTime {
  #aheadMs: number | undefined
  #roundTripMs = 0
  #learntAtMs = 0

  /**
   * Converts an instant of the monotonic clock to the server's epoch milliseconds. Returns undefined before the first
   * reply.
   */
  at(instantMs: number): number | undefined {
    return this.#aheadMs === undefined ? undefined : instantMs + this.#aheadMs
  }

  /**
   * Updates the estimate from the server's time in a reply, and from the times at which the call was sent and the
   * reply arrived. Returns the milliseconds by which the server's clock has certainly gone back, otherwise 0.
   */
  learn(serverMs: number, sentAtMs: number, receivedAtMs: number): number {
    const roundTripMs = receivedAtMs - sentAtMs
    // Add half a millisecond, because the server's time is truncated to a millisecond.
    const aheadMs = serverMs + 0.5 - (sentAtMs + receivedAtMs) / 2
    const stepMs = this.#aheadMs === undefined ? 0 : aheadMs - this.#aheadMs
    const uncertainMs = (roundTripMs + this.#roundTripMs) / 2 + 2
    if (
      this.#aheadMs === undefined ||
      roundTripMs <= this.#roundTripMs ||
      receivedAtMs - this.#learntAtMs > TRUSTED_MS ||
      Math.abs(stepMs) > uncertainMs
    ) {
      this.#aheadMs = aheadMs
      this.#roundTripMs = roundTripMs
      this.#learntAtMs = receivedAtMs
    }
    return Math.max(0, -stepMs - uncertainMs)
  }
}
