/**
 * Returns a function that counts the timers set since now by code of `room`, a part of the path of its files. Timers must
 * be fake. All test files of a worker share the global `setTimeout`, so a client that an earlier file left may set
 * timers, too.
 */
export const countFakeTimers = (room: string): (() => number) => {
  const timers = new Set<unknown>()
  const { setTimeout, clearTimeout } = globalThis
  const set = (run: () => void, ms?: number) => {
    const timer = setTimeout(() => {
      timers.delete(timer)
      run()
    }, ms)
    if (new Error().stack?.includes(room)) timers.add(timer)
    return timer
  }
  const clear = (timer?: NodeJS.Timeout) => {
    timers.delete(timer)
    clearTimeout(timer)
  }
  // The library that fakes timers keeps what it must restore in members of its functions.
  Object.assign(globalThis, {
    setTimeout: Object.assign(set, setTimeout),
    clearTimeout: Object.assign(clear, clearTimeout),
  })
  return () => timers.size
}
