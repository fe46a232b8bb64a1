import { performance } from "node:perf_hooks"

/** Most calls in flight: enough that neither side waits for the other. */
const MOST_CALLS = 4
/**
 * Calls in flight up to which a request is sent immediately. On a quiet server, no request waits for others to join it.
 */
const CALLS_AT_ONCE = 2
/**
 * CALLS_AT_ONCE for a process whose event loop is always busy. Such a process reads a reply long after it has arrived.
 * A second call in flight would gain nothing, and cost as much as any call. Batching the requests that arrive in
 * between halves the number of calls.
 */
const CALLS_AT_ONCE_WHEN_BUSY = 1
/**
 * Most requests per call. A call has room for far fewer requests of different clients (take-call.ts). Requests of one
 * client are merged, but responding to more of them at the same time would block this process.
 */
const MOST_REQUESTS = 512
/** Number of waiting requests that are worth another call while some are in flight. */
const ENOUGH_REQUESTS = 32

/** Calls from one sample of the event loop to the next. */
const CALLS_A_LOOK = 32
/** Weight of one sample in the average idle share. On a busy machine, a single sample means little. */
const WEIGHT_OF_LOOK = 1 / 16
/** Highest idle share of an event loop that counts as busy. */
const MOST_REST_OF_BUSY = 0.1
/** Idle share from which a process with one call at a time counts as waiting: a second call would have kept it busy. */
const LEAST_REST_OF_WAITING = 0.2
/** Fewest samples before a process that turned out to wait can count as busy again. */
const LOOKS_UNTIL_TRIED_AGAIN = 100

/** The event loop's total idle time and the current time, in milliseconds. */
export interface LoopTimes {
  readonly restedMs: number
  readonly nowMs: number
}

/** A policy for the time and size of batches. An idle process sends immediately, and a busy one in few calls. */
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

  /** True if another call may be sent for this number of waiting requests. */
  hasRoom(callsInFlight: number, waiting: number): boolean {
    return callsInFlight < this.#callsAtOnce || (callsInFlight < MOST_CALLS && waiting >= ENOUGH_REQUESTS)
  }

  /** Returns the most requests that the next call may have. */
  mostRequests(callsInFlight: number, waiting: number): number {
    // Divide the requests among calls. With a single call, Redis and this process would idle in turns.
    const share = Math.ceil(waiting / Math.max(1, this.#callsAtOnce - callsInFlight))
    return Math.min(MOST_REQUESTS, Math.max(ENOUGH_REQUESTS, share))
  }

  /**
   * Notes that no call is in flight and no request waits. Idle time from now on does not show how many calls would keep
   * the process busy.
   */
  paused(): void {
    if (this.#callsAtOnce === CALLS_AT_ONCE_WHEN_BUSY) this.#pausedAt = this.#loop()
  }

  /** Notes that a call is sent. */
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
    // Skip a sample of zero length.
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
      // In a runtime that does not measure idle time, it is always 0.
      this.#callsAtOnce = CALLS_AT_ONCE_WHEN_BUSY
    }
  }
}

function loopTimes(): LoopTimes {
  return { restedMs: performance.nodeTiming.idleTime, nowMs: performance.now() }
}
