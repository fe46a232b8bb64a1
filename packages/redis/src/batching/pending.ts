import type { StoreResult } from "@sluice/core/stores"
import type { Node } from "../node/node.ts"
import type { RedisRequest } from "../scripts/script-input.ts"

/** A request that waits for its reply. */
export interface PendingTake {
  readonly asked: RedisRequest
  /** Milliseconds that the request waits, from an instant that the batch sender sets. */
  readonly withinMs: number
  /** An instant of the monotonic clock. */
  deadlineMs: number
  resolve: (answer: StoreResult) => void
  reject: (error: Error) => void
  /** True if the request has been rejected, so that no caller waits for a reply. */
  isRejected: boolean
  /** True if the request was already sent once, too late to count. */
  wasLate: boolean
}

/** The server that a request waits for. The server creates the error for a missed deadline. */
export type Server = Pick<Node, "silence">

/** Rejects requests whose deadline has passed, and returns the others. `server` is the server that they wait for. */
export function expire(batch: readonly PendingTake[], nowMs: number, server: Server): PendingTake[] {
  return batch.filter((waiting) => stillWaits(waiting, nowMs, server))
}

/** True if the request still waits. Rejects it if its deadline has passed. */
export function stillWaits(waiting: PendingTake, nowMs: number, server: Server): boolean {
  if (waiting.isRejected) return false
  if (waiting.deadlineMs > nowMs) return true
  settle(waiting, server.silence())
  return false
}

/** Rejects a request. A no-op if it has already been rejected. */
export function settle(waiting: PendingTake, error: Error): void {
  waiting.isRejected = true
  waiting.reject(error)
  // A call that is never answered must not keep the request's callbacks, and everything they hold, in memory.
  waiting.resolve = nobody
  waiting.reject = nobody
}

function nobody(): void {}
