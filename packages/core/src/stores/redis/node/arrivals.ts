/** When a call was sent and its reply arrived, by the monotonic clock. */
export interface ReplyArrival {
  readonly sentAtMs: number
  readonly answeredAtMs: number
  /** True if the reply to a later call was read before this one, so that counters may have changed since. */
  readonly isOvertaken: boolean
}

/**
 * The order in which the replies of a server are read. A server carries out calls in the order in which they were sent, and
 * replies are read in that order too, unless a script had to be sent again or the server's clock went back.
 */
export class ReplyOrder {
  /** When the latest of the calls was sent whose replies have been read, and the server's time in its reply. */
  #newestSentAtMs = Number.NEGATIVE_INFINITY
  #newestMs = Number.NEGATIVE_INFINITY

  /** Notes that the reply to a call that was sent at this instant has been read; `nowMs` is the server's time in it, if any. */
  add(sentAtMs: number, nowMs: number = this.#newestMs): ReplyArrival {
    const isOvertaken = sentAtMs < this.#newestSentAtMs || nowMs < this.#newestMs
    if (sentAtMs >= this.#newestSentAtMs) {
      this.#newestSentAtMs = sentAtMs
      this.#newestMs = nowMs
    }
    return { sentAtMs, answeredAtMs: performance.now(), isOvertaken }
  }
}
