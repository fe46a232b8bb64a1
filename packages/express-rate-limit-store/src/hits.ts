import type { Decision, PolicyCheck } from "@sluice/core"
import type { ClientRateLimitInfo } from "express-rate-limit"

/**
 * Converts a decision to the count that express-rate-limit compares with its limit. For a limit of 5, the count is 1
 * to 5 for an admitted hit and 6 for a refused hit. The client has `limit - totalHits` hits left, or more if a bucket
 * has a larger burst.
 *
 * A refused client that waits until `resetTime` is admitted. For an admitted hit, `resetTime` is the time when all
 * hits are available again. If no hit is left, `resetTime` is the time when the next hit is available. The exception
 * is a hit that may be undone, because express-rate-limit does not undo a hit after its `resetTime`.
 */
export function hitsOf(decision: Decision, mayBeUndone: boolean): ClientRateLimitInfo {
  const { allowed, limit, remaining, retryAfterMs, resetAfterMs } = decision
  // The current time is rounded up, so that a client cannot send its next hit a fraction of a millisecond too early.
  if (!allowed) return { totalHits: limit + 1, resetTime: timeAfter(retryAfterMs + 1) }
  const totalHits = Math.max(1, limit - remaining)
  if (remaining > 0 || mayBeUndone) return { totalHits, resetTime: timeAfter(resetAfterMs) }
  const { nextUnitAfterMs } = decision.checks[0] as PolicyCheck
  return { totalHits, resetTime: timeAfter(nextUnitAfterMs + 1) }
}

/** Returns the count of a client from a peek, without a new hit; undefined if the client has no hits. */
export function hitsBefore({
  allowed,
  limit,
  remaining,
  retryAfterMs,
  resetAfterMs,
}: Decision): ClientRateLimitInfo | undefined {
  if (remaining >= limit) return undefined
  return { totalHits: limit - remaining, resetTime: timeAfter(allowed ? resetAfterMs : retryAfterMs + 1) }
}

function timeAfter(ms: number): Date {
  return new Date(Date.now() + ms)
}
