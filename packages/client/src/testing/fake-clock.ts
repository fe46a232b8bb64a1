import { onTestFinished, vi } from "vitest"

/** A fake clock that counts the timers of the client. */
export interface FakeClock {
  /** Returns the timers that the client has set, and that have neither ended nor been cleared. */
  timers(): number
}

/** The epoch time at which each fake clock starts. */
const START_MS = 1_795_744_800_000

let active: FakeClock | undefined

/**
 * Replaces the clock until the test ends. Counts only timers of files in this package: earlier tests in this process
 * may have left open connections, which also set timers.
 */
export function fakeClock(): FakeClock {
  if (active !== undefined) return active
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance", "Date"], now: START_MS })
  const fakes = { setTimeout, clearTimeout }
  const own = new Set<unknown>()
  const counting = {
    setTimeout(callback: () => void, ms?: number) {
      const timer = fakes.setTimeout(() => {
        own.delete(timer)
        callback()
      }, ms)
      if (/packages\/client\/src\/(?!testing)/.test(String(new Error().stack))) own.add(timer)
      return timer
    },
    clearTimeout(timer: ReturnType<typeof setTimeout> | undefined) {
      own.delete(timer)
      fakes.clearTimeout(timer)
    },
  }
  Object.assign(globalThis, counting)
  onTestFinished(() => {
    Object.assign(globalThis, fakes)
    vi.useRealTimers()
    active = undefined
  })
  active = { timers: () => own.size }
  return active
}
