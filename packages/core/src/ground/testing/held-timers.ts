import { createHook } from "node:async_hooks"

/**
 * Count only timers that are set by code of our packages, because the test runner may set or clear its own timers at
 * any moment.
 */
const OWN = new URL("../../../..", import.meta.url).pathname

/** A Node timer with its private members. No public member shows whether the timer has ended. */
interface Timer extends NodeJS.Timeout {
  /** True when the timer has fired. */
  readonly _destroyed: boolean
  readonly _idleTimeout: number
}

/** The value of the timer's time after it was cleared. */
const CLEARED = -1

/**
 * Runs `work`. Passes a function to the work. The function counts the timers that were set since then and keep the
 * process alive.
 */
export const countHeldTimers = async <T>(work: (held: () => number) => T): Promise<Awaited<T>> => {
  const timers: Timer[] = []
  const hook = createHook({
    init(_id, type, _trigger, resource) {
      if (type !== "Timeout") return
      const stack = (new Error().stack ?? "").split("\n").slice(2)
      if (stack.some((frame) => frame.includes(OWN))) timers.push(resource as Timer)
    },
  }).enable()
  const isHeld = (timer: Timer) => timer.hasRef() && !timer._destroyed && timer._idleTimeout !== CLEARED
  try {
    return await work(() => timers.filter(isHeld).length)
  } finally {
    hook.disable()
  }
}
