import { StoreUnavailableError, textOf } from "../../errors.ts"

/** Whatever a client rejects with, as what a store rejects with. */
export function failureOf(error: unknown): StoreUnavailableError {
  if (error instanceof StoreUnavailableError) return error
  const message = error instanceof Error ? error.message : textOf(error)
  return new StoreUnavailableError(`Redis failed: ${message}`, { cause: error })
}

/** That the deadline is over. */
export function silent(): StoreUnavailableError {
  return new StoreUnavailableError("Redis did not answer in time.", { kind: "timeout" })
}

/** Whether it is this error of Redis. They begin with a code, before which those of scripts had a place and a dash until Redis 7. */
export function isCode(error: unknown, code: string): boolean {
  // Our own errors may quote what a server said.
  if (!(error instanceof Error) || error instanceof StoreUnavailableError) return false
  return new RegExp(`(^|\\s)-?${code}\\b`).test(error.message)
}
