/**
 * Returns a function that counts the timers set since now by code of `room`, a part of the path of its files, if
 * `isCounted` returns true for them. Timers must be fake. All test files of a worker share the global `setTimeout`, so a
 * client that an earlier file left may set timers, too.
 */
export const countFakeTimers = (
  room: string,
): ((isCounted?: (timer: NodeJS.Timeout) => boolean) => number) => {
  const timers = new Set<NodeJS.Timeout>()
  const { setTimeout, clearTimeout } = globalThis
  const set = (run: () => void, ms?: number) => {
    const timer = setTimeout(() => {
      timers.delete(timer)
      run()
    }, ms)
    if (deepStack().includes(room)) timers.add(timer)
    return timer
  }
  const clear = (timer?: NodeJS.Timeout) => {
    if (timer !== undefined) timers.delete(timer)
    clearTimeout(timer)
  }
  // The library that fakes timers keeps what it must restore in members of its functions.
  Object.assign(globalThis, {
    setTimeout: Object.assign(set, setTimeout),
    clearTimeout: Object.assign(clear, clearTimeout),
  })
  return (isCounted = () => true) => [...timers].filter(isCounted).length
}

/** Returns a stack that also shows who calls the functions of `ground/time.ts`, which call each other. */
const deepStack = (): string => {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 50
  const { stack = "" } = new Error()
  Error.stackTraceLimit = stackTraceLimit
  return stack
}
