import { StoreUnavailableError, textOf } from "../../errors.ts"

/** Whatever a client rejects with, as what a store rejects with. */
export function failureOf(error: unknown): StoreUnavailableError {
  if (error instanceof StoreUnavailableError) return error
  const message = error instanceof Error ? error.message : textOf(error)
  return new StoreUnavailableError(`Redis failed: ${message}`, { cause: error })
}

/** That the deadline is over. Who reads of it has to know where to look: at Redis, or at the way to it. */
export function silent(isConnected = true): StoreUnavailableError {
  const why = isConnected ? "." : ": its client has no connection."
  return new StoreUnavailableError(`Redis did not answer in time${why}`, { kind: "timeout" })
}

/** Whether it is this error of Redis. They begin with a code, before which those of scripts had a place and a dash until Redis 7. */
export function isCode(error: unknown, code: string): boolean {
  // Our own errors may quote what a server said.
  if (!(error instanceof Error) || error instanceof StoreUnavailableError) return false
  return new RegExp(`(^|\\s)-?${code}\\b`).test(error.message)
}
