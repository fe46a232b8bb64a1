import { performance } from "node:perf_hooks"

/** Calls in flight at the most: enough that neither side waits for the other. */
const MOST_CALLS = 4
/** Calls in flight up to which a request is sent at once, so that on a quiet server nobody waits for company. */
const CALLS_AT_ONCE = 2
/**
 * The same in a process that never rests. It reads a reply long after it has come, so that another call beside it would win
 * nothing, and cost what a call does: with those who come meanwhile together in the next one there are half as many.
 */
const CALLS_AT_ONCE_WHEN_BUSY = 1
/**
 * Requests a call at the most. Those of many clients are far fewer, as a call has room for (take-call.ts); those of one are merged,
 * but to answer more of them at once would hold up this process.
 */
const MOST_REQUESTS = 512
/** Requests that are worth another call although some are in flight. */
const ENOUGH_REQUESTS = 32

/** Calls from one look at the event loop to the next. */
const CALLS_A_LOOK = 32
/** The part of what is known of its rest that one look makes up: on a busy machine a single one says little. */
const WEIGHT_OF_LOOK = 1 / 16
/** The part of its time that the event loop of a busy process waits at the most. */
const MOST_REST_OF_BUSY = 0.1
/** The part from which on a process that sends one call at a time waits for those: another would have kept it at work. */
const LEAST_REST_OF_WAITING = 0.2
/** Looks after which a process that turned out to wait is taken for busy again at the earliest. */
const LOOKS_UNTIL_TRIED_AGAIN = 100

/** Of the event loop, in milliseconds: how long it has waited for something to do, and the time now. */
export interface LoopTimes {
  readonly restedMs: number
  readonly nowMs: number
}

/** When a batch sender sends how much: at once while there is time for it, and in few calls while there is none. */
export class BatchPolicy {
  readonly #loop: () => LoopTimes
  #callsAtOnce = CALLS_AT_ONCE
  #callsUntilLook = CALLS_A_LOOK
  #looksUntilBusy = 0
  #lastLook: LoopTimes
  /** The part of its time that the event loop waits, of late. Whoever has not been looked at is taken for one with time. */
  #rest = 1
  #pausedAt: LoopTimes | undefined

  constructor(loop: () => LoopTimes = loopTimes) {
    this.#loop = loop
    this.#lastLook = loop()
  }

  /** Whether another call may be sent for so many who wait. */
  hasRoom(callsInFlight: number, waiting: number): boolean {
    return callsInFlight < this.#callsAtOnce || (callsInFlight < MOST_CALLS && waiting >= ENOUGH_REQUESTS)
  }

  /** Requests that the next call takes at the most. */
  mostRequests(callsInFlight: number, waiting: number): number {
    // With one call under way for all of them, Redis would rest while their replies are read, and then they while it works.
    const share = Math.ceil(waiting / Math.max(1, this.#callsAtOnce - callsInFlight))
    return Math.min(MOST_REQUESTS, Math.max(ENOUGH_REQUESTS, share))
  }

  /** No call is under way, and nobody waits. That it rests now says nothing of how many calls would keep it at work. */
  paused(): void {
    if (this.#callsAtOnce === CALLS_AT_ONCE_WHEN_BUSY) this.#pausedAt = this.#loop()
  }

  /** A call is sent. */
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
    // Of no time nothing can be said.
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
      // A runtime that does not measure it says that it has never waited.
      this.#callsAtOnce = CALLS_AT_ONCE_WHEN_BUSY
    }
  }
}

function loopTimes(): LoopTimes {
  return { restedMs: performance.nodeTiming.idleTime, nowMs: performance.now() }
}
