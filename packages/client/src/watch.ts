/** The longest delay of a timer in JavaScript engines: 24.8 days. */
export const LONGEST_TIMER_MS: number = 2 ** 31 - 1

/** A call on its way through a gate. A retry belongs to the same call, so it stays before later calls. */
export interface PacedCall {
  /** The order in which the calls arrived. */
  readonly order: number
  /** The signals that end a wait early: the caller's, and the signal of `close()`. */
  readonly signals: readonly AbortSignal[]
  /** The longest total time that the call may wait, in milliseconds. */
  readonly maxWaitMs: number
  /** The milliseconds that the call may still wait. The duration of each wait is subtracted. */
  waitLeftMs: number
}

/**
 * The functions to call when a signal is aborted. A signal has one listener for all calls, because Node warns about
 * the eleventh listener. `AbortSignal.any` is not used, because it leaks memory in Node 20 and 22 while its source
 * lives.
 */
const callbacks = new WeakMap<AbortSignal, Set<() => void>>()

function callbacksOf(signal: AbortSignal): Set<() => void> {
  const known = callbacks.get(signal)
  if (known !== undefined) return known
  const made = new Set<() => void>()
  signal.addEventListener("abort", () => {
    for (const call of made) call()
  })
  callbacks.set(signal, made)
  return made
}

/**
 * Watches a call that waits. Calls `give` once, with the reason of a signal, or with the error of `tooLate` when the
 * call has waited too long. Returns a function that ends the watch, and that subtracts the duration of the wait.
 */
export function watch(call: PacedCall, tooLate: () => unknown, give: (reason: unknown) => void): () => void {
  const sinceMs = performance.now()
  const stop = (): void => {
    clearTimeout(timer)
    for (const signal of call.signals) callbacksOf(signal).delete(onAbort)
    call.waitLeftMs -= performance.now() - sinceMs
  }
  const end = (reason: unknown): void => {
    stop()
    give(reason)
  }
  const onAbort = (): void => end(call.signals.find(({ aborted }) => aborted)?.reason)
  const timer = setTimeout(() => end(tooLate()), call.waitLeftMs)
  for (const signal of call.signals) callbacksOf(signal).add(onAbort)
  return stop
}

/** Throws the reason of a signal that has already been aborted. */
export function throwIfAborted({ signals }: PacedCall): void {
  for (const signal of signals) signal.throwIfAborted()
}
