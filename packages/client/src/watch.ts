/** The longest delay of a timer in JavaScript engines: 24.8 days. */
export const LONGEST_TIMER_MS: number = 2 ** 31 - 1

/** A call on its way through a gate. A retry is the same call, so it keeps its place before later calls. */
export interface PacedCall {
  /** The order in which the calls arrived. */
  readonly order: number
  /** The signals that end a wait early: the caller's, and the signal of `close()`. */
  readonly signals: readonly AbortSignal[]
  /** The longest time that it waits in all. */
  readonly maxWaitMs: number
  /** The milliseconds that it may still wait. Each wait takes its time off. */
  waitLeftMs: number
}

/**
 * The functions to call when a signal is aborted. A signal has one listener for all calls: Node warns about the eleventh
 * one, and `AbortSignal.any` leaks memory in Node 20 and 22 while its source lives.
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
 * Watches a call that waits. Calls `give` once, with the reason of a signal, or with the error of `tooLate` when the call
 * has waited too long. Returns a function that ends the watch, which takes the time of the wait off.
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

/** Throws the reason of a signal that is aborted already. */
export function throwIfAborted({ signals }: PacedCall): void {
  for (const signal of signals) signal.throwIfAborted()
}
