import { StoreUnavailableError } from "../ground/errors.ts"

/**
 * What a store is about to answer, if it does within `timeoutMs` milliseconds, counted from the call; undefined for a store
 * that sees to its deadline itself. Rejects with what the store rejects with, or with a {@link StoreUnavailableError} of kind
 * `timeout`; what the store says later is dropped. If nobody waits for the answer, the timer does not keep the process alive.
 */
export function withinDeadline<T>(
  answers: Promise<T>,
  timeoutMs: number | undefined,
  isAwaited = true,
): Promise<T> {
  // A store that others wrote may answer with a thenable, and that one's `then` may throw.
  const answered = Promise.resolve(answers)
  if (timeoutMs === undefined) return answered
  return new Promise((resolve, reject) => {
    let grace: NodeJS.Immediate | undefined
    const timer = setTimeout(() => {
      // A stall of our own event loop is not a failure of the store: replies that have arrived are read first.
      grace = setImmediate(() => {
        reject(
          new StoreUnavailableError(`The store did not answer within ${timeoutMs} ms.`, { kind: "timeout" }),
        )
      })
    }, timeoutMs)
    if (!isAwaited) timer.unref()
    answered
      .finally(() => {
        clearTimeout(timer)
        clearImmediate(grace)
      })
      .then(resolve, reject)
  })
}
