import type { TakeCall } from "../scripts/take-call.ts"
import { expire, type PendingTake, type Server, settle, stillWaits } from "./pending.ts"

/** A queue of requests that wait for a call, in order. */
export class TakeQueue {
  /** Requests that were added since `begin`. */
  #arrivals: PendingTake[] = []
  #waiting: PendingTake[] = []

  /** Requests whose timeout has started. */
  get waiting(): readonly PendingTake[] {
    return this.#waiting
  }

  /** Appends a request. Returns true if it is the first request since `begin`, which must then be called again. */
  add(waiting: PendingTake): boolean {
    return this.#arrivals.push(waiting) === 1
  }

  /**
   * Starts the timeouts of the added requests. Returns the earliest of their deadlines, or Infinity if there are no
   * requests.
   */
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

  /**
   * Moves requests from the front of the queue to a call. Rejects expired requests, because they would make the whole
   * call too late. Returns the requests of the call, and the earliest of their deadlines.
   */
  moveTo(
    call: TakeCall,
    most: number,
    server: Server,
  ): { batch: readonly PendingTake[]; deadlineMs: number } {
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
    // Usually no requests are left.
    this.#waiting = waiting.splice(next)
    return { batch, deadlineMs }
  }

  /** Restarts the timeouts of all requests. Returns the earliest of the new deadlines. */
  restart(): number {
    const others = this.#arrivals
    this.#arrivals = this.#waiting
    this.#waiting = []
    const firstMs = this.begin()
    this.#arrivals = others
    return firstMs
  }

  /** Puts requests that must be resent at the front of the queue. */
  putBack(returned: readonly PendingTake[]): void {
    this.#waiting.unshift(...returned)
  }

  /** Rejects requests whose deadline has passed. Returns true if it rejected at least one. */
  expire(nowMs: number, server: Server): boolean {
    const left = expire(this.#waiting, nowMs, server)
    const isShorter = left.length < this.#waiting.length
    this.#waiting = left
    return isShorter
  }

  /** Removes and returns all requests whose timeout has started. */
  clear(): readonly PendingTake[] {
    return this.#waiting.splice(0)
  }

  /** Rejects all requests whose timeout has started. */
  reject(error: Error): void {
    for (const waiting of this.clear()) settle(waiting, error)
  }
}
