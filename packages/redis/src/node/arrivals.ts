/** The times at which a call was sent and its reply arrived, measured with the monotonic clock. */
export interface ReplyArrival {
  readonly sentAtMs: number
  readonly answeredAtMs: number
  /** True if the reply to a later call was read before this reply, so the counters may have changed since. */
  readonly isOvertaken: boolean
}

/**
 * The order in which a server's replies are read. A server runs calls in the order in which they were sent, and its
 * replies are read in the same order. Replies are out of order only after a script was resent or the server's clock
 * went back.
 */
export class ReplyOrder {
  /** The send time of the latest call that has a reply, and the server's time in that reply. */
  #newestSentAtMs = Number.NEGATIVE_INFINITY
  #newestMs = Number.NEGATIVE_INFINITY

  /**
   * Notes that the reply to a call sent at `sentAtMs` has been read. `nowMs` is the server's time in the reply, or
   * absent if the reply contains no time.
   */
  add(sentAtMs: number, nowMs: number = this.#newestMs): ReplyArrival {
    const isOvertaken = sentAtMs < this.#newestSentAtMs || nowMs < this.#newestMs
    if (sentAtMs >= this.#newestSentAtMs) {
      this.#newestSentAtMs = sentAtMs
      this.#newestMs = nowMs
    }
    return { sentAtMs, answeredAtMs: performance.now(), isOvertaken }
  }
}
