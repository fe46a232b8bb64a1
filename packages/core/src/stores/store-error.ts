import { ClosedError, StoreUnavailableError, textOf } from "../ground/errors.ts"

/** Converts any value that a store has thrown into a StoreUnavailableError. */
export function storeErrorOf(error: unknown): StoreUnavailableError {
  if (error instanceof StoreUnavailableError) return error
  const message = error instanceof Error ? error.message : textOf(error)
  return new StoreUnavailableError(`The store failed: ${message}`, { cause: error })
}

/** True if a call that failed with this error has certainly changed nothing, so that it can be retried. */
export function isNotApplied(error: unknown): boolean {
  return (
    error instanceof ClosedError ||
    (error instanceof StoreUnavailableError && error.outcome === "not-applied")
  )
}
