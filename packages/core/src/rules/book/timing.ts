import { ignore, unlessAborted } from "../../ground/time.ts"

/** Where a rule book has its time from. */
export interface Timing {
  /** Epoch milliseconds. */
  now(): number
  /** Waits for so many milliseconds, or rejects when the signal is aborted. */
  wait(ms: number, signal: AbortSignal): Promise<void>
  /** A number from 0 to below 1. */
  random(): number
}

/** What does not answer by then has failed: a source that hangs would never be asked again. */
export const LOAD_TIMEOUT_MS = 10_000

/**
 * What `work` yields. Rejects when `loading` is aborted, and when there is no answer within ten seconds: `loading` is
 * then aborted with `tooLate`, and that is the error.
 */
export async function inTime<T>(
  work: Promise<T>,
  loading: AbortController,
  timing: Timing,
  tooLate: (reason: Error) => Error,
): Promise<T> {
  const answered = new AbortController()
  const error = new Error(`no answer within ${LOAD_TIMEOUT_MS / 1000} seconds`)
  // Without a way to wait it may take as long as it likes.
  sleep(LOAD_TIMEOUT_MS, answered.signal, timing).then(() => loading.abort(tooLate(error)), ignore)
  try {
    return await unlessAborted(work, loading.signal)
  } finally {
    answered.abort()
  }
}

const FIRST_RETRY_MS = 500
const LAST_RETRY_MS = 30_000

/** How long to wait after so many failures in a row: from half a second to half a minute, random by half. */
export function retryMs(failures: number, timing: Timing): number {
  const longest = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(failures - 1, 16))
  return longest * (1 - timing.random() / 2)
}

/** A poll may come earlier by this part of the interval, so that many processes do not ask together; never later. */
const JITTER = 0.2

/** How long to wait for the next poll after a load that began at this time. */
export function nextPollMs(
  intervalMs: number,
  begunAtMs: number,
  timing: Timing,
  jitter: number = JITTER,
): number {
  const dueMs = intervalMs * (1 - jitter * timing.random()) - (timing.now() - begunAtMs)
  // Loads that take longer than the interval leave the source a moment all the same.
  return Math.max(dueMs, intervalMs / 10)
}

/** Waits. Rejects when the signal is aborted, and when there is no way to wait. */
export async function sleep(ms: number, signal: AbortSignal, timing: Pick<Timing, "wait">): Promise<void> {
  await timing.wait(ms, signal)
  // A wait that others wrote may not heed its signal.
  signal.throwIfAborted()
}
