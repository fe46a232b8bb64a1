import type { StoreResult } from "@sluice/core/stores"
import type { Node } from "../node/node.ts"
import type { RedisRequest } from "../scripts/script-input.ts"

/** A request that waits for its reply. */
export interface PendingTake {
  readonly asked: RedisRequest
  /** Milliseconds that the request waits. The batch sender decides when this time starts. */
  readonly withinMs: number
  /** An instant of the monotonic clock. */
  deadlineMs: number
  resolve: (answer: StoreResult) => void
  reject: (error: Error) => void
  /** True if the request has been rejected, so that no caller waits for a reply. */
  isRejected: boolean
  /** True if the request was already sent once and reached Redis too late to be counted. */
  wasLate: boolean
}

/** The server that a request waits for. This object creates the error for a missed deadline. */
export type Server = Pick<Node, "silence">

/** Rejects requests whose deadline has passed, and returns the others. The requests wait for `server`. */
export function expire(batch: readonly PendingTake[], nowMs: number, server: Server): PendingTake[] {
  return batch.filter((waiting) => stillWaits(waiting, nowMs, server))
}

/** Returns true if the request still waits. Rejects the request if its deadline has passed. */
export function stillWaits(waiting: PendingTake, nowMs: number, server: Server): boolean {
  if (waiting.isRejected) return false
  if (waiting.deadlineMs > nowMs) return true
  settle(waiting, server.silence())
  return false
}

/** Rejects a request. A no-op if the request has already been rejected. */
export function settle(waiting: PendingTake, error: Error): void {
  waiting.isRejected = true
  waiting.reject(error)
  // If a call never gets a reply, the request's callbacks must not stay in memory with everything that they
  // reference.
  waiting.resolve = nobody
  waiting.reject = nobody
}

function nobody(): void {}
