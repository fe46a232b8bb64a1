import type { CounterState } from "@sluice/core/stores"

/** A reply of the shared store about one counter. Times of this process come from its monotonic clock. */
export interface Seen {
  readonly state: CounterState
  /** The server's time in the reply. */
  readonly serverMs: number
  /** When the call was sent, by the clock of this process. */
  readonly sentMs: number
  /** When the reply arrived, by the clock of this process. */
  readonly arrivedMs: number
}

/**
 * Returns a time that the server's clock has certainly reached. It is the time in the reply plus the time since the
 * reply arrived.
 */
export function reachedServerMs({ serverMs, arrivedMs }: Seen, nowMs: number): number {
  return serverMs + Math.max(0, Math.floor(nowMs - arrivedMs))
}

/**
 * Returns a time that the server's clock has certainly not passed. The server decided after the call was sent, and it
 * reports whole milliseconds, so its clock may have shown nearly a millisecond more.
 */
export function latestServerMs({ serverMs, sentMs }: Seen, nowMs: number): number {
  return serverMs + 1 + (nowMs - sentMs)
}

/** Returns the earliest time of this process at which the server's clock may have reached `endMs`. */
export function endOfThisProcessMs({ serverMs, sentMs }: Seen, endMs: number): number {
  return sentMs + (endMs - serverMs - 1)
}

/** The age of a reply in whole milliseconds, rounded up. */
export function ageMsOf(sentMs: number, nowMs: number): number {
  return Math.max(0, Math.ceil(nowMs - sentMs))
}
