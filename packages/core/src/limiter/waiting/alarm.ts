import { type Clock, soundTime, waitHeld } from "../../ground/clock.ts"
import { LONGEST_TIMER_MS } from "../../ground/time.ts"

/** The reason to stop a timer. Without a reason, each abort would create an error with a stack, which is slow. */
const NOT_NEEDED = new Error("The timer is not needed.")

/**
 * Calls `then` at the given time of the clock, or `failed` if the clock cannot wait. Returns a function that cancels the
 * call.
 */
export function callAt(
  clock: Clock,
  untilMs: number,
  then: () => void,
  failed: (error: unknown) => void,
): () => void {
  const stopping = new AbortController()
  waitUntil(clock, untilMs, stopping.signal).then(
    () => {
      if (!stopping.signal.aborted) then()
    },
    (error: unknown) => {
      if (!stopping.signal.aborted) failed(error)
    },
  )
  return () => stopping.abort(NOT_NEEDED)
}

/** Waits with as many timers as necessary. */
async function waitUntil(clock: Clock, untilMs: number, signal: AbortSignal): Promise<void> {
  // Timers drop fractions, so round up: otherwise the timer would fire early.
  const ms = Math.max(0, Math.ceil(untilMs - soundTime(clock)))
  const nextMs = Math.min(ms, LONGEST_TIMER_MS)
  await (clock.wait === undefined ? waitHeld(nextMs, signal) : clock.wait(nextMs, signal))
  if (ms > nextMs && !signal.aborted) await waitUntil(clock, untilMs, signal)
}
