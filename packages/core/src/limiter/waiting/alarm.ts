import { type Clock, soundTime } from "../../ground/clock.ts"
import { after, LONGEST_TIMER_MS } from "../../ground/time.ts"

/**
 * Calls `then` at the given time of the clock, or `failed` if the clock cannot wait. Waits with as many timers as
 * necessary. Returns a function that cancels the call.
 */
export function callAt(
  clock: Clock,
  untilMs: number,
  then: () => void,
  failed: (error: unknown) => void,
): () => void {
  // Round up, because timers drop fractions and would otherwise fire early.
  const ms = Math.max(0, Math.ceil(untilMs - soundTime(clock)))
  if (ms <= LONGEST_TIMER_MS) return after(ms, clock, then, failed, true)
  const next = (): void => {
    cancel = callAt(clock, untilMs, then, failed)
  }
  let cancel = after(LONGEST_TIMER_MS, clock, next, failed, true)
  return () => cancel()
}
