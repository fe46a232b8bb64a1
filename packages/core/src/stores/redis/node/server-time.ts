/** After so long another reply is trusted more than an earlier one that was quicker: clocks drift. */
const TRUSTED_MS = 10_000

/**
 * The time of a Redis server, in terms of this process' monotonic clock, learnt from the times in its replies. The
 * quickest reply of the last seconds counts; one that cannot be true beside it tells that the server's clock was set.
 */
export class ServerTime {
  #aheadMs: number | undefined
  #roundTripMs = 0
  #learntAtMs = 0

  /** The server's epoch milliseconds at an instant of the monotonic clock; undefined before the first reply. */
  at(instantMs: number): number | undefined {
    return this.#aheadMs === undefined ? undefined : instantMs + this.#aheadMs
  }

  /** A reply to what was sent and received at these instants said `serverMs`. */
  learn(serverMs: number, sentAtMs: number, receivedAtMs: number): void {
    const roundTripMs = receivedAtMs - sentAtMs
    // Half a millisecond, since the server's is cut to a whole one.
    const aheadMs = serverMs + 0.5 - (sentAtMs + receivedAtMs) / 2
    if (
      this.#aheadMs === undefined ||
      roundTripMs <= this.#roundTripMs ||
      receivedAtMs - this.#learntAtMs > TRUSTED_MS ||
      Math.abs(aheadMs - this.#aheadMs) > (roundTripMs + this.#roundTripMs) / 2 + 2
    ) {
      this.#aheadMs = aheadMs
      this.#roundTripMs = roundTripMs
      this.#learntAtMs = receivedAtMs
    }
  }
}
