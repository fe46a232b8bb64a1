import { createHook } from "node:async_hooks"

/** Timers of the test runner come and go at any moment, so only timers that are set by code of our packages count. */
const OWN = new URL("../../../..", import.meta.url).pathname

/** A timer of Node. The timer has no public member that tells whether it has ended. */
interface Timer extends NodeJS.Timeout {
  /** True when the timer has fired. */
  readonly _destroyed: boolean
  readonly _idleTimeout: number
}

/** The time of a timer that was cleared. */
const CLEARED = -1

/** Runs `work`. Passes a function to it that counts the timers set since then that keep the process alive. */
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
