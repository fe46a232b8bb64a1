import { StoreUnavailableError, textOf } from "../ground/errors.ts"

/** Whatever a store failed with, as what it should have. */
export function storeErrorOf(error: unknown): StoreUnavailableError {
  if (error instanceof StoreUnavailableError) return error
  const message = error instanceof Error ? error.message : textOf(error)
  return new StoreUnavailableError(`The store failed: ${message}`, { cause: error })
}
