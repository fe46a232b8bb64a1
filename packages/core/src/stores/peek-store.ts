import { isThenable, type MaybePromise } from "../ground/maybe-promise.ts"
import type { Check, Store, StoreResult } from "./store.ts"
import { peekResult } from "./take-together.ts"

/**
 * Returns the result that a `take` of these checks would return now. Takes nothing. The result includes every
 * counter, and no units are taken.
 */
export function peekStore(
  store: Store,
  checks: readonly Check[],
  withinMs?: number,
): MaybePromise<StoreResult> {
  const reading = store.read(checks, withinMs)
  return isThenable(reading) ? reading.then((read) => peekResult(checks, read)) : peekResult(checks, reading)
}
