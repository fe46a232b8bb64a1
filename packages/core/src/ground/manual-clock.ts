import { inspect } from "node:util"
import type { Clock } from "./clock.ts"
import { parseDuration } from "./duration.ts"
import { InvalidOptionError } from "./errors.ts"

/** A clock for tests and replays. Its time changes only when the test moves the clock. */
export interface ManualClock extends Clock {
  /** Resolves when the clock has moved by `ms` milliseconds, or rejects when the signal is aborted. */
  wait(ms: number, signal?: AbortSignal): Promise<void>
  /**
   * Moves the clock by milliseconds, or by a duration such as `"1 minute"`. A negative number moves it back. Throws
   * {@link InvalidOptionError} for Infinity.
   */
  advance(duration: number | string): void
  /** Moves the clock to an instant, in epoch milliseconds. */
  set(epochMs: number): void
  /**
   * Starts again, for the next test: sets the clock to its first time, and deletes all counters of the limiters on this
   * clock. Throws {@link InvalidOptionError} if a limiter does not count in memory, because other processes may use its
   * counters.
   */
  resetAll(): void
}

/**
 * Creates a clock for tests. Its time changes only when the test moves the clock. The clock starts at `epochMs`, by
 * default 2024-01-01T00:00:00Z. Windows of all usual lengths up to a day start at this default.
 * @example
 * ```ts
 * import { createLimiter } from "@sluice/core"
 * import { manualClock } from "@sluice/core/testing"
 *
 * const clock = manualClock()
 * const limiter = createLimiter({ limit: 1, window: "1 minute", clock })
 * const request = { remoteAddress: "192.0.2.7" }
 *
 * await limiter.decide(request) // allowed: true
 * const refused = await limiter.decide(request) // allowed: false, retryAfterMs: 60001
 * clock.advance(refused.retryAfterMs)
 * await limiter.decide(request) // allowed: true
 * clock.resetAll()
 * await limiter.decide(request) // allowed: true
 * ```
 * @throws {@link InvalidOptionError} if a time is not a finite number
 */
export function manualClock(epochMs: number = Date.UTC(2024, 0, 1)): ManualClock {
  let nowMs = requireFinite(epochMs, "epochMs", "a time")
  const sleepers = new Set<Sleeper>()
  const listeners = new Set<() => void>()
  const moveTo = (to: number): void => {
    nowMs = to
    for (const sleeper of [...sleepers]) {
      if (sleeper.dueMs > nowMs) continue
      sleepers.delete(sleeper)
      sleeper.wake()
    }
  }
  return {
    now: () => nowMs,
    async wait(ms, signal) {
      signal?.throwIfAborted()
      await new Promise<void>((resolve, reject) => {
        const abort = (): void => {
          sleepers.delete(sleeper)
          reject(signal?.reason)
        }
        const wake = (): void => {
          signal?.removeEventListener("abort", abort)
          resolve()
        }
        const sleeper: Sleeper = { dueMs: nowMs + ms, wake }
        sleepers.add(sleeper)
        signal?.addEventListener("abort", abort, { once: true })
      })
    },
    advance(duration) {
      const ms = typeof duration === "string" ? parseDuration(duration) : duration
      moveTo(nowMs + requireFinite(ms ?? duration, "duration", "a duration"))
    },
    set(toMs) {
      moveTo(requireFinite(toMs, "epochMs", "a time"))
    },
    resetAll() {
      nowMs = epochMs
      const errors: unknown[] = []
      // Reset the others, too, because the next test uses all of them.
      for (const listener of listeners) {
        try {
          listener()
        } catch (error) {
          errors.push(error)
        }
      }
      if (errors.length > 0) throw errors[0]
    },
    onReset(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

/**
 * Throws for NaN and Infinity. With such a clock, the store would fail and every request in the test would be admitted.
 */
function requireFinite(value: unknown, path: string, noun: string): number {
  if (Number.isFinite(value)) return value as number
  const accepted =
    "a finite number of milliseconds; a retryAfterMs of Infinity means that waiting does not help"
  throw new InvalidOptionError([{ path, message: `${inspect(value)} is not ${noun}`, accepted }])
}

interface Sleeper {
  readonly dueMs: number
  wake(): void
}
