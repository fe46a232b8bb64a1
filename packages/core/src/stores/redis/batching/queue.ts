import type { RedisRequest } from "../scripts/script-input.ts"
import { expire, type PendingTake, type Server, settle, stillWaits } from "./pending.ts"

/** Where the requests of a call are put together: TakeCall, so far as it is used. */
interface Filled {
  /** Whether there was room for it. */
  add(asked: RedisRequest): boolean
}

/** Some requests of one call, with the instant of the monotonic clock at which the first of them is waited for no more. */
export interface Batch {
  readonly batch: readonly PendingTake[]
  readonly deadlineMs: number
}

/** Requests that wait for a call, in order. */
export class TakeQueue {
  /** Who has come since `begin`. */
  #arrivals: PendingTake[] = []
  #waiting: PendingTake[] = []

  /** Those whose time has begun. */
  get waiting(): readonly PendingTake[] {
    return this.#waiting
  }

  /** Puts a request behind all others. Whether `begin` is due for it, and for none before it. */
  add(waiting: PendingTake): boolean {
    return this.#arrivals.push(waiting) === 1
  }

  /** Begins the time of who has come. Yields the first of their deadlines, Infinity where nobody has. */
  begin(): number {
    const arrivals = this.#arrivals
    let firstMs = Number.POSITIVE_INFINITY
    if (arrivals.length === 0) return firstMs
    this.#arrivals = []
    const nowMs = performance.now()
    for (const waiting of arrivals) {
      waiting.deadlineMs = nowMs + waiting.withinMs
      firstMs = Math.min(firstMs, waiting.deadlineMs)
    }
    this.#waiting = this.#waiting.length === 0 ? arrivals : this.#waiting.concat(arrivals)
    return firstMs
  }

  /** Moves the first ones to a call, without those whose time is over already: they would make all of it too late. */
  moveTo(call: Filled, most: number, server: Server): Batch {
    const nowMs = performance.now()
    const waiting = this.#waiting
    const batch: PendingTake[] = []
    let deadlineMs = Number.POSITIVE_INFINITY
    let next = 0
    for (; next < waiting.length && batch.length < most; next++) {
      const one = waiting[next] as PendingTake
      if (!stillWaits(one, nowMs, server)) continue
      if (!call.add(one.asked)) break
      batch.push(one)
      deadlineMs = Math.min(deadlineMs, one.deadlineMs)
    }
    // What is left over, mostly nothing.
    this.#waiting = waiting.splice(next)
    return { batch, deadlineMs }
  }

  /** Puts those before all others who are to be sent again. */
  putBack(returned: readonly PendingTake[]): void {
    this.#waiting.unshift(...returned)
  }

  /** Rejects those whose time is over; whether there were any. */
  expire(nowMs: number, server: Server): boolean {
    const left = expire(this.#waiting, nowMs, server)
    const isShorter = left.length < this.#waiting.length
    this.#waiting = left
    return isShorter
  }

  /** Takes out all whose time has begun. */
  clear(): readonly PendingTake[] {
    return this.#waiting.splice(0)
  }

  /** Rejects them. */
  reject(error: Error): void {
    for (const waiting of this.clear()) settle(waiting, error)
  }
}
