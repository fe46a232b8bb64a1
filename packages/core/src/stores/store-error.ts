import { StoreUnavailableError, textOf } from "../ground/errors.ts"
import { beforeDeadline } from "../ground/time.ts"

/** Returns a store's error as a StoreUnavailableError, whatever value the store threw. */
export function storeErrorOf(error: unknown): StoreUnavailableError {
  if (error instanceof StoreUnavailableError) return error
  const message = error instanceof Error ? error.message : textOf(error)
  return new StoreUnavailableError(`The store failed: ${message}`, { cause: error })
}

/**
 * Settles as the store's answer does, or rejects with a {@link StoreUnavailableError} of kind `timeout` after
 * `timeoutMs` milliseconds. `timeoutMs` is undefined if the store enforces the deadline itself. Unless `isAwaited`, the
 * timer does not keep the process alive.
 */
export function withinDeadline<T>(
  answered: Promise<T>,
  timeoutMs: number | undefined,
  isAwaited = true,
): Promise<T> {
  // A custom store may return a thenable, and its `then` may throw.
  if (timeoutMs === undefined) return Promise.resolve(answered)
  const message = `The store did not answer within ${timeoutMs} ms.`
  const late = () => Promise.reject(new StoreUnavailableError(message, { kind: "timeout" }))
  return beforeDeadline(answered, timeoutMs, late, isAwaited)
}
