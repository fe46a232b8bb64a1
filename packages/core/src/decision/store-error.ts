import { StoreUnavailableError, textOf } from "../ground/errors.ts"
import { beforeDeadline } from "../ground/time.ts"

/** Returns the error of a store as a StoreUnavailableError, whatever the store failed with. */
export function storeErrorOf(error: unknown): StoreUnavailableError {
  if (error instanceof StoreUnavailableError) return error
  const message = error instanceof Error ? error.message : textOf(error)
  return new StoreUnavailableError(`The store failed: ${message}`, { cause: error })
}

/**
 * Settles as the store's answer does, or rejects with a {@link StoreUnavailableError} of kind `timeout` after `timeoutMs`
 * milliseconds. A timeout of undefined is for a store that keeps its deadline itself. If nobody waits for the answer, the
 * timer does not keep the process alive.
 */
export function withinDeadline<T>(
  answered: Promise<T>,
  timeoutMs: number | undefined,
  isAwaited = true,
): Promise<T> {
  // A store that others wrote may answer with a thenable, whose `then` may throw.
  if (timeoutMs === undefined) return Promise.resolve(answered)
  const message = `The store did not answer within ${timeoutMs} ms.`
  const late = () => Promise.reject(new StoreUnavailableError(message, { kind: "timeout" }))
  return beforeDeadline(answered, timeoutMs, late, isAwaited)
}
