/** A call on its way through a gate. A retry is the same call, so it keeps its place before later calls. */
export interface PacedCall {
  /** The order in which the calls arrived. */
  readonly order: number
  /** What ends a wait early: the caller's signal, and that of `close()`. */
  readonly signals: readonly AbortSignal[]
  /** The milliseconds that it may still wait. Each wait takes its time off. */
  waitLeftMs: number
}

/**
 * Watches a call that waits. Calls `give` once, with the reason of a signal, or with the error of `tooLate` when the call
 * has waited too long. Returns a function that ends the watch, which takes the time of the wait off.
 */
export function watch(call: PacedCall, tooLate: () => Error, give: (reason: unknown) => void): () => void {
  const sinceMs = performance.now()
  // A signal of its own, because Node warns about more than ten listeners of one signal.
  const signal = AbortSignal.any([...call.signals])
  const stop = (): void => {
    clearTimeout(timer)
    signal.removeEventListener("abort", onAbort)
    call.waitLeftMs -= performance.now() - sinceMs
  }
  const end = (reason: unknown): void => {
    stop()
    give(reason)
  }
  const onAbort = (): void => end(signal.reason)
  const timer = setTimeout(() => end(tooLate()), call.waitLeftMs)
  signal.addEventListener("abort", onAbort)
  return stop
}
