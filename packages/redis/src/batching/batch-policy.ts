import { performance } from "node:perf_hooks"

/** Most calls in flight. With four, neither this process nor Redis waits for the other. */
const MOST_CALLS = 4
/**
 * Number of calls in flight below which a request is sent immediately. So on a quiet server, no request waits for
 * others.
 */
const CALLS_AT_ONCE = 2
/**
 * The value of CALLS_AT_ONCE for a process whose event loop is always busy. Such a process reads a reply long after
 * the reply has arrived. So a second call in flight would save no time, but would cost as much as the first. Batching
 * the requests that arrive during one call halves the number of calls.
 */
const CALLS_AT_ONCE_WHEN_BUSY = 1
/**
 * Most requests per call. Only a call with many requests of the same client, which are merged, reaches this limit
 * (take-call.ts). Resolving more requests at the same time would block this process.
 */
const MOST_REQUESTS = 512
/** Number of waiting requests that justify another call while other calls are in flight. */
const ENOUGH_REQUESTS = 32

/** Number of calls between two samples of the event loop. */
const CALLS_A_LOOK = 32
/**
 * Weight of one sample in the average idle share. The weight is low because a single sample is unreliable on a busy
 * machine.
 */
const WEIGHT_OF_LOOK = 1 / 16
/** An event loop counts as busy up to this idle share. */
const MOST_REST_OF_BUSY = 0.1
/** From this idle share on, a process with one call at a time gets a second one, which would have kept it busy. */
const LEAST_REST_OF_WAITING = 0.2
/** After a return to two calls, number of samples before the process can count as busy again. */
const LOOKS_UNTIL_TRIED_AGAIN = 100

/** The event loop's total idle time and the current time, in milliseconds. */
export interface LoopTimes {
  readonly restedMs: number
  readonly nowMs: number
}

/**
 * Decides when a batch is sent and how large it is. An idle process sends requests immediately, and a busy process
 * batches them into few calls.
 */
export class BatchPolicy {
  readonly #loop: () => LoopTimes
  #callsAtOnce = CALLS_AT_ONCE
  #callsUntilLook = CALLS_A_LOOK
  #looksUntilBusy = 0
  #lastLook: LoopTimes
  /** Recent idle share of the event loop. Before the first sample, the process counts as idle. */
  #rest = 1
  #pausedAt: LoopTimes | undefined

  constructor(loop: () => LoopTimes = loopTimes) {
    this.#loop = loop
    this.#lastLook = loop()
  }

  /** True if another call may be sent when this number of requests wait. */
  hasRoom(callsInFlight: number, waiting: number): boolean {
    return callsInFlight < this.#callsAtOnce || (callsInFlight < MOST_CALLS && waiting >= ENOUGH_REQUESTS)
  }

  /** Returns the maximum number of requests in the next call. */
  mostRequests(callsInFlight: number, waiting: number): number {
    // Divide the requests among several calls. With a single call, Redis and this process would take turns being
    // idle.
    const share = Math.ceil(waiting / Math.max(1, this.#callsAtOnce - callsInFlight))
    return Math.min(MOST_REQUESTS, Math.max(ENOUGH_REQUESTS, share))
  }

  /**
   * Notes that no call is in flight and no request waits. The idle time of this pause is ignored, because more calls
   * could not have used it.
   */
  paused(): void {
    if (this.#callsAtOnce === CALLS_AT_ONCE_WHEN_BUSY) this.#pausedAt = this.#loop()
  }

  /** Must be called whenever a call is sent. Takes a sample when one is due. */
  sent(): void {
    if (this.#pausedAt !== undefined) {
      const { restedMs, nowMs } = this.#loop()
      this.#lastLook = {
        restedMs: this.#lastLook.restedMs + restedMs - this.#pausedAt.restedMs,
        nowMs: this.#lastLook.nowMs + nowMs - this.#pausedAt.nowMs,
      }
      this.#pausedAt = undefined
    }
    if (--this.#callsUntilLook > 0) return
    this.#callsUntilLook = CALLS_A_LOOK
    const { restedMs, nowMs } = this.#loop()
    const spentMs = nowMs - this.#lastLook.nowMs
    // Skip the sample if no time has passed.
    if (spentMs > 0)
      this.#rest += WEIGHT_OF_LOOK * ((restedMs - this.#lastLook.restedMs) / spentMs - this.#rest)
    this.#lastLook = { restedMs, nowMs }
    const isBusy = this.#rest <= MOST_REST_OF_BUSY
    if (this.#callsAtOnce === CALLS_AT_ONCE_WHEN_BUSY) {
      if (this.#rest < LEAST_REST_OF_WAITING) return
      this.#callsAtOnce = CALLS_AT_ONCE
      this.#looksUntilBusy = LOOKS_UNTIL_TRIED_AGAIN
    } else if (this.#looksUntilBusy > 0) {
      this.#looksUntilBusy--
    } else if (restedMs > 0 && isBusy) {
      // In a runtime that does not measure idle time, the idle time is always 0.
      this.#callsAtOnce = CALLS_AT_ONCE_WHEN_BUSY
    }
  }
}

function loopTimes(): LoopTimes {
  return { restedMs: performance.nodeTiming.idleTime, nowMs: performance.now() }
}
