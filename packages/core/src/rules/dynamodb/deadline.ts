/** A call did not answer in time. It may still be carried out. */
export class DeadlineError extends Error {
  constructor(timeoutMs: number) {
    super(`no answer within ${timeoutMs} ms`)
    this.name = "DeadlineError"
  }
}

/**
 * What `run` yields within so many milliseconds; its signal is aborted when they are over or when the caller's signal
 * is. Rejects then at once, with DeadlineError or the caller's reason, even if `run` pays no attention to its signal: the
 * SDK pays none while it waits for credentials.
 */
export async function within<T>(
  timeoutMs: number,
  signal: AbortSignal | undefined,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted()
  const running = new AbortController()
  const stop = (): void => running.abort(signal?.reason)
  const timer = setTimeout(() => running.abort(new DeadlineError(timeoutMs)), timeoutMs)
  signal?.addEventListener("abort", stop, { once: true })
  try {
    const stopped = new Promise<never>((_, reject) => {
      running.signal.addEventListener("abort", () => reject(running.signal.reason), { once: true })
    })
    return await Promise.race([stopped, run(running.signal)])
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener("abort", stop)
  }
}
