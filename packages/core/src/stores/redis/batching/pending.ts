import type { StoreResult } from "../../store.ts"
import { type Reach, silent } from "../failure.ts"
import type { RedisRequest } from "../scripts/script-input.ts"

/** A request that waits for its answer. */
export interface PendingTake {
  readonly asked: RedisRequest
  /** For so long, from an instant that the batch sender decides. */
  readonly withinMs: number
  /** An instant of the monotonic clock. */
  deadlineMs: number
  resolve: (answers: readonly StoreResult[]) => void
  reject: (error: Error) => void
  /** An answer that comes then is for nobody. */
  isRejected: boolean
  /** Whether it has been sent once too late for it to count. */
  wasLate: boolean
}

/** What somebody waits for, as it is told of. */
export interface Server {
  readonly title: string
  readonly reach: Reach
}

/** Rejects those whose time is over; yields those who still wait. `server` is the one that they wait for. */
export function expire(batch: readonly PendingTake[], nowMs: number, server: Server): PendingTake[] {
  return batch.filter((waiting) => stillWaits(waiting, nowMs, server))
}

/** The same of one. */
export function stillWaits(waiting: PendingTake, nowMs: number, server: Server): boolean {
  if (waiting.isRejected) return false
  if (waiting.deadlineMs > nowMs) return true
  settle(waiting, silent(server.reach, server.title))
  return false
}

/** Rejects it, unless that has been done. */
export function settle(waiting: PendingTake, error: Error): void {
  waiting.isRejected = true
  waiting.reject(error)
  // A call that is never answered must not keep alive what waited for it, and all that its request had.
  waiting.resolve = nobody
  waiting.reject = nobody
}

function nobody(): void {}
