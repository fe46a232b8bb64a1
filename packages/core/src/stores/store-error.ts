import { StoreUnavailableError, textOf } from "../ground/errors.ts"

/** Converts any value that a store has thrown into a StoreUnavailableError. */
export function storeErrorOf(error: unknown): StoreUnavailableError {
  if (error instanceof StoreUnavailableError) return error
  const message = error instanceof Error ? error.message : textOf(error)
  return new StoreUnavailableError(`The store failed: ${message}`, { cause: error })
}
