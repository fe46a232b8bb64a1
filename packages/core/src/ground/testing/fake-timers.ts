/**
 * Returns a function that counts the timers that code of a folder sets from now on. `room` is a part of the paths of
 * these files. Only timers for which `isCounted` returns true count. Timers must be fake. All test files of a worker
 * share the global `setTimeout`, so a client that an earlier file did not close may also set timers.
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
  // Copy the members of the functions, in which the library for fake timers stores what it must restore.
  Object.assign(globalThis, {
    setTimeout: Object.assign(set, setTimeout),
    clearTimeout: Object.assign(clear, clearTimeout),
  })
  return (isCounted = () => true) => [...timers].filter(isCounted).length
}

/**
 * Returns a stack that is long enough to include the callers of functions in `ground/time.ts`, which call each other.
 */
const deepStack = (): string => {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 50
  const { stack = "" } = new Error()
  Error.stackTraceLimit = stackTraceLimit
  return stack
}
