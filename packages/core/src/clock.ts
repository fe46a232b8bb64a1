/** Where the time comes from: `now()` yields epoch milliseconds; fractions are dropped by who asks. */
export interface Clock {
  now(): number
}

/** A clock that stands still until it is moved, for tests and replays. */
export interface ManualClock extends Clock {
  /** Moves the clock by so many milliseconds; a negative number steps it back. */
  advance(ms: number): void
  /** Moves the clock to an instant, in epoch milliseconds. */
  set(epochMs: number): void
}

const startedAtMs = performance.timeOrigin

/**
 * Epoch milliseconds that never jump: the wall clock at the start of the process, moved on by the monotonic one.
 * A step of the system's clock (NTP, an operator) neither hands out a second quota nor keeps anyone waiting.
 */
export const steadyClock: Clock = { now: () => startedAtMs + performance.now() }

/**
 * A clock for tests: `const clock = manualClock()`, then `clock.advance(60_000)`.
 * Starts at `epochMs`, by default at 2024-01-01T00:00:00Z, the start of a window of any usual length up to a day.
 */
export function manualClock(epochMs: number = Date.UTC(2024, 0, 1)): ManualClock {
  let nowMs = epochMs
  return {
    now: () => nowMs,
    advance(ms) {
      nowMs += ms
    },
    set(to) {
      nowMs = to
    },
  }
}
