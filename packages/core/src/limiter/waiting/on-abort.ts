type Listener = () => void

/** One listener a signal: Node warns of a leak where many wait on one, which is what a signal for all of them is for. */
const listenersOf = new WeakMap<AbortSignal, Set<Listener>>()

/** Calls back when the signal is aborted. Yields what stops that. */
export function onAbort(signal: AbortSignal, listener: Listener): () => void {
  const listeners = listenersOf.get(signal) ?? listenTo(signal)
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

/** What `work` yields; rejects with the signal's reason when that is aborted first. */
export async function orAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work
  return new Promise((resolve, reject) => {
    const stop = onAbort(signal, () => reject(signal.reason))
    work.finally(stop).then(resolve, reject)
  })
}

function listenTo(signal: AbortSignal): Set<Listener> {
  const listeners = new Set<Listener>()
  listenersOf.set(signal, listeners)
  const tell = (): void => {
    for (const listener of listeners) listener()
  }
  signal.addEventListener("abort", tell)
  return listeners
}
