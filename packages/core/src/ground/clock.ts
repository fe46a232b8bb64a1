import hooks from "node:perf_hooks"
import { inspect } from "node:util"
import { InvalidOptionError } from "./errors.ts"

/**
 * The source of time. In an app, this is the steady time of the process. In a test, this is a clock that the test
 * moves.
 */
export interface Clock {
  /** Returns the current time in epoch milliseconds. Callers drop fractions. */
  now(): number
  /** Resolves after `ms` milliseconds, or rejects when the signal is aborted. Default: a timer. */
  readonly wait?: ((ms: number, signal?: AbortSignal) => Promise<void>) | undefined
}

/**
 * The latest valid time, which is in the year 2106, because counters in memory store seconds in 32 bits. A clock that
 * returns a later time probably does not count milliseconds.
 */
export const LATEST_MS: number = 0xffff_ffff * 1000

/** A clock for tests and replays. Its time changes only when the test moves the clock. */
export interface ManualClock extends Clock {
  /** Resolves when the clock has moved by `ms` milliseconds, or rejects when the signal is aborted. */
  wait(ms: number, signal?: AbortSignal): Promise<void>
  /**
   * Moves the clock by `ms` milliseconds. A negative value moves it back. Throws {@link InvalidOptionError} for
   * Infinity.
   */
  advance(ms: number): void
  /** Moves the clock to an instant, in epoch milliseconds. */
  set(epochMs: number): void
}

const startedAtMs = hooks.performance.timeOrigin

/**
 * True if `Date` is the real class. Fake timers may have replaced it before this module was loaded. A fake `Date` of
 * Node's `mock.timers` has the prototype of the real class. A fake `Date` of another library extends the real class.
 */
const isReal = Date.prototype.constructor === Date && Object.getPrototypeOf(Date) === Function.prototype
const REAL_DATE = isReal ? Date : undefined
const REAL_SET_TIMEOUT = isReal ? setTimeout : undefined

/**
 * A clock that never jumps. Its time is the wall-clock time at process start plus the time that has passed on the
 * monotonic clock. A change of the system clock (NTP, an operator) therefore neither grants a quota twice nor makes a
 * client wait longer. In a test with fake timers, this clock follows them.
 */
export const steadyClock: Clock = {
  now: () =>
    Date === REAL_DATE && setTimeout === REAL_SET_TIMEOUT
      ? startedAtMs + hooks.performance.now()
      : fakedTime(),
}

/**
 * Returns the time that a test has set. Returns the real time if no store could count at the test's time. Prefers a
 * faked `Date`, because both `tick` and `setSystemTime` move it. `setSystemTime` does not move `performance`.
 */
function fakedTime(): number {
  const nowMs = Date === REAL_DATE ? startedAtMs + globalThis.performance.now() : Date.now()
  return isCountable(nowMs) ? nowMs : startedAtMs + hooks.performance.now()
}

/** True for epoch milliseconds at which every store can count. */
export function isCountable(nowMs: unknown): nowMs is number {
  return typeof nowMs === "number" && nowMs >= 0 && nowMs <= LATEST_MS
}

/**
 * Creates a clock for tests. Its time changes only when the test moves the clock. The clock starts at `epochMs`, by
 * default 2024-01-01T00:00:00Z. Windows of all usual lengths up to a day start at this default.
 * @example
 * ```ts
 * import { createLimiter, manualClock } from "@sluice/core"
 *
 * const clock = manualClock()
 * const limiter = createLimiter({ limit: 1, window: "1 minute", clock })
 * const request = { remoteAddress: "192.0.2.7" }
 *
 * await limiter.decide(request) // allowed: true
 * const refused = await limiter.decide(request) // allowed: false, retryAfterMs: 60001
 * clock.advance(refused.retryAfterMs)
 * await limiter.decide(request) // allowed: true
 * ```
 * @throws {@link InvalidOptionError} if a time is not a finite number
 */
export function manualClock(epochMs: number = Date.UTC(2024, 0, 1)): ManualClock {
  let nowMs = requireFinite(epochMs, "epochMs", "a time")
  const sleepers = new Set<Sleeper>()
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
    advance(ms) {
      moveTo(nowMs + requireFinite(ms, "ms", "a duration"))
    },
    set(toMs) {
      moveTo(requireFinite(toMs, "epochMs", "a time"))
    },
  }
}

/**
 * Throws for NaN and Infinity. With such a clock, the store would fail and every request in the test would be admitted.
 */
function requireFinite(value: number, path: string, noun: string): number {
  if (Number.isFinite(value)) return value
  const accepted =
    "a finite number of milliseconds; a retryAfterMs of Infinity means that waiting does not help"
  throw new InvalidOptionError([{ path, message: `${inspect(value)} is not ${noun}`, accepted }])
}

interface Sleeper {
  readonly dueMs: number
  wake(): void
}

/** Returns the clock's time, or the steady clock's time if the clock throws or returns an invalid time. */
export function soundTime(clock: Clock): number {
  try {
    const nowMs: unknown = clock.now()
    return isCountable(nowMs) ? nowMs : steadyClock.now()
  } catch {
    return steadyClock.now()
  }
}
