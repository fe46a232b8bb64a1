import { ClosedError, StoreUnavailableError, sentenceOf } from "../ground/errors.ts"
import type { MaybePromise } from "../ground/maybe-promise.ts"
import { LONGEST_TIMER_MS } from "../ground/time.ts"
import { BACKGROUND_REFUND_MS, type CounterKey, type Refund, type Store } from "../stores/store.ts"
import { storeErrorOf, withinDeadline } from "../stores/store-error.ts"

/** A call that changes what was counted. */
export type Correction = "refund" | "settle" | "reset" | "block" | "unblock"

const NONE: readonly CounterKey[] = []

/**
 * Applies the refunds within `withinMs`. Returns the counters that have more units afterward. A refund of negative
 * units is a charge.
 */
export async function applyRefunds(
  store: Store,
  refunds: readonly Refund[],
  withinMs: number,
  isAwaited: boolean,
): Promise<readonly CounterKey[]> {
  if (refunds.length === 0) return NONE
  await within(store, store.refund(refunds, withinMs), withinMs, isAwaited)
  return refunds.filter(({ units }) => units > 0)
}

/** Returns how long a background refund may take, in milliseconds. It may take longer than a decision. */
export function backgroundMs(storeTimeoutMs: number): number {
  return Math.min(LONGEST_TIMER_MS, Math.max(BACKGROUND_REFUND_MS, 2 * storeTimeoutMs))
}

/** Waits for a store's call, and enforces the deadline if the store does not do so itself. */
export async function within(
  store: Store,
  done: MaybePromise<void>,
  withinMs: number,
  isAwaited = true,
): Promise<void> {
  // A memory store is done already and needs no timer.
  if (done === undefined) return
  await withinDeadline(done as Promise<void>, store.keepsDeadline === true ? undefined : withinMs, isAwaited)
}

/** True if the call has certainly changed nothing, so that it can be retried. */
export function isNotApplied(error: unknown): boolean {
  return (
    error instanceof ClosedError ||
    (error instanceof StoreUnavailableError && error.outcome === "not-applied")
  )
}

const DONE: Readonly<Record<Correction, string>> = {
  refund: "the units were given back",
  settle: "the units were corrected",
  reset: "the counters were reset",
  block: "the client was blocked",
  unblock: "the client was unblocked",
}

/** Returns the error for the caller: what failed, whether anything changed, and what to do. */
export function correctionFailed(call: Correction, error: unknown): Error {
  if (error instanceof ClosedError) return error
  const failure = storeErrorOf(error)
  const { kind, outcome, message } = failure
  return new StoreUnavailableError(`${sentenceOf(message)} ${adviceOf(call, isNotApplied(failure))}`, {
    kind,
    outcome,
    cause: failure,
  })
}

function adviceOf(call: Correction, isNotApplied: boolean): string {
  if (isNotApplied) return `Nothing was changed: you can call ${call} again.`
  const unknown = `It is unknown whether ${DONE[call]}.`
  if (call === "refund" || call === "settle") {
    return `${unknown} Another ${call} has no effect, because it could count the units twice.`
  }
  return `${unknown} You can call ${call} again.`
}
