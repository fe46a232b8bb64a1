import { StoreUnavailableError, textOf } from "../ground/errors.ts"

/** Returns a store's error as a StoreUnavailableError, whatever value the store threw. */
export function storeErrorOf(error: unknown): StoreUnavailableError {
  if (error instanceof StoreUnavailableError) return error
  const message = error instanceof Error ? error.message : textOf(error)
  return new StoreUnavailableError(`The store failed: ${message}`, { cause: error })
}
