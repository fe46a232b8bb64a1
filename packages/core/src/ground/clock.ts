import hooks from "node:perf_hooks"

/**
 * The source of time. In an app, this is the steady time of the process. In a test, this is a clock that the test
 * moves.
 */
export interface Clock {
  /** Returns the current time in epoch milliseconds. Callers drop fractions. */
  now(): number
  /** Resolves after `ms` milliseconds, or rejects when the signal is aborted. Default: a timer. */
  readonly wait?: ((ms: number, signal?: AbortSignal) => Promise<void>) | undefined
  /**
   * Calls the listener when a test forgets everything that was counted on this clock. Returns the function that removes
   * the listener. Only `manualClock` in `@sluice/core/testing` needs this.
   */
  readonly onReset?: ((listener: () => void) => () => void) | undefined
}

/**
 * The latest valid time, which is in the year 2106, because counters in memory store seconds in 32 bits. A clock that
 * returns a later time probably does not count milliseconds.
 */
export const LATEST_MS: number = 0xffff_ffff * 1000

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

/** Returns the clock's time, or the steady clock's time if the clock throws or returns an invalid time. */
export function soundTime(clock: Clock): number {
  try {
    const nowMs: unknown = clock.now()
    return isCountable(nowMs) ? nowMs : steadyClock.now()
  } catch {
    return steadyClock.now()
  }
}
