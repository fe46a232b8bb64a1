import hooks from "node:perf_hooks"
import { setTimeout as delay } from "node:timers/promises"
import { inspect } from "node:util"
import { InvalidOptionError } from "./errors.ts"

/** Where the time comes from: in an app the process's own steady time, in tests a clock that you move. */
export interface Clock {
  /** The present, in epoch milliseconds; fractions are dropped by who asks. */
  now(): number
  /** Resolves after so many milliseconds, or rejects when the signal is aborted. Default: a timer. */
  readonly wait?: ((ms: number, signal?: AbortSignal) => Promise<void>) | undefined
}

/**
 * The last time that counts, in the year 2106, as far as the 32 bits of seconds of a counter in memory reach. A clock
 * beyond it does not count milliseconds.
 */
export const LATEST_MS: number = 0xffff_ffff * 1000

/** A clock that stands still until it is moved, for tests and replays. */
export interface ManualClock extends Clock {
  /** Resolves when the clock has been moved by so many milliseconds, or rejects when the signal is aborted. */
  wait(ms: number, signal?: AbortSignal): Promise<void>
  /** Moves the clock by so many milliseconds; a negative number steps it back. Throws {@link InvalidOptionError} for Infinity. */
  advance(ms: number): void
  /** Moves the clock to an instant, in epoch milliseconds. */
  set(epochMs: number): void
}

const startedAtMs = hooks.performance.timeOrigin

/**
 * What a library of fake timers replaces; undefined if it had done so before this module was loaded. `mock.timers` of Node shares
 * the prototype of the real `Date`, and other libraries extend it.
 */
const isReal = Date.prototype.constructor === Date && Object.getPrototypeOf(Date) === Function.prototype
const REAL_DATE = isReal ? Date : undefined
const REAL_SET_TIMEOUT = isReal ? setTimeout : undefined

/**
 * Epoch milliseconds that never jump: the wall clock at the start of the process, moved on by the monotonic one.
 * A step of the system's clock (NTP, an operator) neither hands out a second quota nor keeps anyone waiting. In a test with fake
 * timers it moves with them.
 */
export const steadyClock: Clock = {
  now: () =>
    Date === REAL_DATE && setTimeout === REAL_SET_TIMEOUT
      ? startedAtMs + hooks.performance.now()
      : fakedTime(),
}

/**
 * Returns the time that a test has set, or the real time if no store could count at it. `tick` and `setSystemTime` both move a faked
 * `Date`; the latter does not move `performance`.
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
 * A clock for tests that stands still until it is moved. Starts at `epochMs`, by default at 2024-01-01T00:00:00Z, the start
 * of a window of any usual length up to a day.
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
 * @throws {@link InvalidOptionError} for what is no time
 */
export function manualClock(epochMs: number = Date.UTC(2024, 0, 1)): ManualClock {
  let nowMs = requireFinite(epochMs, "epochMs", "an instant")
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
      moveTo(nowMs + requireFinite(ms, "ms", "a time"))
    },
    set(toMs) {
      moveTo(requireFinite(toMs, "epochMs", "an instant"))
    },
  }
}

/** A test whose clock tells no time any more would see a store that is gone, which admits. */
function requireFinite(value: number, path: string, noun: string): number {
  if (Number.isFinite(value)) return value
  const accepted = "a number of milliseconds; a wait of Infinity, as a decision may tell, never ends"
  throw new InvalidOptionError([{ path, message: `${inspect(value)} is not ${noun}`, accepted }])
}

interface Sleeper {
  readonly dueMs: number
  wake(): void
}

/** The time by a clock that may be broken: the steady clock's, where it throws or yields no epoch milliseconds. */
export function soundTime(clock: Clock): number {
  try {
    const nowMs: unknown = clock.now()
    return isCountable(nowMs) ? nowMs : steadyClock.now()
  } catch {
    return steadyClock.now()
  }
}

/** Waits by a timer; until then the process does not end. Rejects when the signal is aborted. */
export async function waitHeld(ms: number, signal?: AbortSignal): Promise<void> {
  if (setTimeout !== REAL_SET_TIMEOUT) return await waitFaked(ms, signal, true)
  await delay(ms, undefined, signal === undefined ? {} : { signal })
}

/** Waits by a timer that keeps no process alive. Rejects when the signal is aborted. */
export async function waitUnheld(ms: number, signal?: AbortSignal): Promise<void> {
  if (setTimeout !== REAL_SET_TIMEOUT) return await waitFaked(ms, signal, false)
  await delay(ms, undefined, signal === undefined ? { ref: false } : { ref: false, signal })
}

/**
 * By timers that somebody has put in the place of Node's: a test that fakes them, whose time the steady clock tells then, while nobody
 * fakes those of `node:timers/promises`; or who watches an app, for whom they are Node's own.
 */
async function waitFaked(ms: number, signal: AbortSignal | undefined, holds: boolean): Promise<void> {
  signal?.throwIfAborted()
  await new Promise<void>((resolve, reject) => {
    const abort = (): void => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort)
      resolve()
    }, ms)
    // Those of a browser are numbers.
    if (!holds) (timer as Partial<NodeJS.Timeout>).unref?.()
    signal?.addEventListener("abort", abort, { once: true })
  })
}
