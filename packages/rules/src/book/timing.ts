import { after } from "@sluice/core/kit"
import { unlessAborted } from "@sluice/core/rules"
import { loadError } from "./edition.ts"

/** The time source of a rule book. */
export interface Timing {
  /** Returns epoch milliseconds. */
  now(): number
  /** Waits for `ms` milliseconds. Rejects when the signal is aborted. */
  wait(ms: number, signal?: AbortSignal): Promise<void>
  /** Returns a number from 0 to below 1. */
  random(): number
}

/** Timeout of a load. Without a timeout, a source that hangs would never be read again. */
export const LOAD_TIMEOUT_MS = 10_000

/**
 * Returns the result of `work`. Rejects when `loading` is aborted. After ten seconds without a result, aborts
 * `loading` with a RuleSourceError that names the service, and rejects with the same error.
 */
export async function inTime<T>(
  work: Promise<T>,
  loading: AbortController,
  timing: Timing,
  service: string | undefined,
): Promise<T> {
  const abort = (): void =>
    loading.abort(loadError(service, new Error(`no response within ${LOAD_TIMEOUT_MS / 1000} seconds`)))
  const cancel = after(LOAD_TIMEOUT_MS, timing, abort)
  try {
    return await unlessAborted(work, loading.signal)
  } finally {
    cancel()
  }
}

const FIRST_RETRY_MS = 500
const LAST_RETRY_MS = 30_000

/**
 * Returns the backoff after this number of failures in a row: from 0.5 to 30 seconds, with random jitter of up to 50 %.
 */
export function retryMs(failures: number, timing: Timing): number {
  const longest = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(failures - 1, 16))
  return longest * (1 - timing.random() / 2)
}

/**
 * Maximum fraction of the interval by which a poll may start early, so that many processes do not poll at the same
 * time. A poll never starts late.
 */
const JITTER = 0.2

/** Returns the delay before the next poll after a load that began at `begunAtMs`. */
export function nextPollMs(
  intervalMs: number,
  begunAtMs: number,
  timing: Timing,
  jitter: number = JITTER,
): number {
  const dueMs = intervalMs * (1 - jitter * timing.random()) - (timing.now() - begunAtMs)
  // Pause between loads even if each load takes longer than the interval.
  return Math.max(dueMs, intervalMs / 10)
}
