import type { CounterState } from "../algorithms/algorithm.ts"
import { ClosedError, StoreUnavailableError, sentenceOf } from "../ground/errors.ts"
import { LONGEST_TIMER_MS } from "../ground/time.ts"
import { BACKGROUND_REFUND_MS, type CounterKey, type Refund, type Store } from "../stores/store.ts"
import { storeErrorOf } from "../stores/store-error.ts"
import type { Decision } from "./decision.ts"
import { DecisionRecord, type Receipt } from "./decision-record.ts"
import { receiptFor, refundsOf, settlementOf, type UsedUnits } from "./settlement.ts"

/** A call that changes counters without a decision. */
export type Correction = "refund" | "settle" | "reset" | "block" | "unblock"

const NONE: readonly CounterKey[] = []
const NOTHING: CounterState = { startMs: 0, current: 0, previous: 0 }

/** The dependencies of corrections. */
export interface CorrectionOptions {
  readonly store: Store
  /** How long a caller waits for the store, in milliseconds. */
  readonly storeTimeoutMs: number
  /**
   * Called with the error of each failed background refund. The units of such a refund may stay taken until their
   * window passes.
   */
  readonly onRefundLost: (error: unknown) => void
}

/** Refunds or charges units of decisions, and resets or blocks counters. */
export class Corrections {
  readonly #options: CorrectionOptions

  constructor(options: CorrectionOptions) {
    this.#options = options
  }

  /**
   * Refunds the units that the decision took. Only the first call has an effect. A no-op if no units were taken.
   * Returns the counters that have more units now. Rejects if the store fails. The refund can then be retried only if
   * it certainly changed nothing.
   */
  async refund(decision: Decision): Promise<readonly CounterKey[]> {
    return this.#correct("refund", decision, refundsOf)
  }

  /**
   * Refunds the units that the decision took, for a call whose result no caller waits for. This refund may take
   * longer than `refund` and never rejects. With `isMeant`, it refunds only the matching counters, and the other
   * counters can be refunded later. Returns the counters that have more units now.
   */
  async refundInBackground(
    decision: Decision,
    isMeant?: (counter: CounterKey) => boolean,
  ): Promise<readonly CounterKey[]> {
    const receipt = DecisionRecord.takeReceipt(decision)
    if (receipt === undefined) return NONE
    let meant = receipt
    if (isMeant !== undefined) {
      meant = receiptFor(receipt, isMeant)
      const rest = receiptFor(receipt, (counter) => !isMeant(counter))
      DecisionRecord.leaveReceipt(decision, rest)
    }
    const withinMs = backgroundMs(this.#options.storeTimeoutMs)
    try {
      return await applyRefunds(receipt.store, refundsOf(meant), withinMs)
    } catch (error) {
      this.#options.onRefundLost(error)
      return NONE
    }
  }

  /**
   * Refunds the units that the decision took in excess of the used units, or charges the missing units. Only the first
   * call has an effect. A no-op after a refund, for a refused decision, and if no rule applied. Returns the counters
   * that have more units now. Rejects as `refund` does.
   */
  async settle(decision: Decision, used: UsedUnits): Promise<readonly CounterKey[]> {
    return this.#correct("settle", decision, (receipt) => settlementOf(receipt, used))
  }

  /** Resets the counters. `call` is the name of the call in error messages. */
  async reset(keys: readonly CounterKey[], call: "reset" | "unblock" = "reset"): Promise<void> {
    if (keys.length === 0) return
    const { store, storeTimeoutMs } = this.#options
    try {
      await store.reset(keys, storeTimeoutMs)
    } catch (error) {
      throw correctionFailed(call, error)
    }
  }

  /**
   * Blocks the counters of penalties for `forMs` milliseconds, unless a longer block is in force. Rejects as `reset`
   * does.
   */
  async block(keys: readonly CounterKey[], forMs: number): Promise<void> {
    const { store, storeTimeoutMs } = this.#options
    // The units of a penalty are milliseconds of a block.
    const charges = keys.map((key): Refund => ({ ...key, units: -forMs, after: NOTHING }))
    try {
      await store.refund(charges, storeTimeoutMs)
    } catch (error) {
      throw correctionFailed("block", error)
    }
  }

  async #correct(
    call: Correction,
    decision: Decision,
    refundsFor: (receipt: Receipt) => readonly Refund[],
  ): Promise<readonly CounterKey[]> {
    const receipt = DecisionRecord.takeReceipt(decision)
    if (receipt === undefined) return NONE
    try {
      return await applyRefunds(receipt.store, refundsFor(receipt), this.#options.storeTimeoutMs)
    } catch (error) {
      if (isNotApplied(error)) DecisionRecord.leaveReceipt(decision, receipt)
      throw correctionFailed(call, error)
    }
  }
}

/**
 * Applies the refunds within `withinMs`. Returns the counters that have more units afterward. A refund of negative
 * units is a charge.
 */
async function applyRefunds(
  store: Store,
  refunds: readonly Refund[],
  withinMs: number,
): Promise<readonly CounterKey[]> {
  if (refunds.length === 0) return NONE
  await store.refund(refunds, withinMs)
  return refunds.filter(({ units }) => units > 0)
}

/**
 * Returns how long a background refund may take, in milliseconds. A background refund may take longer than a decision.
 */
function backgroundMs(storeTimeoutMs: number): number {
  return Math.min(LONGEST_TIMER_MS, Math.max(BACKGROUND_REFUND_MS, 2 * storeTimeoutMs))
}

/** True if the call has certainly changed nothing, so that it can be retried. */
function isNotApplied(error: unknown): boolean {
  return (
    error instanceof ClosedError ||
    (error instanceof StoreUnavailableError && error.outcome === "not-applied")
  )
}

const DONE: Readonly<Record<Correction, string>> = {
  refund: "the units were refunded",
  settle: "the units were corrected",
  reset: "the counters were reset",
  block: "the client was blocked",
  unblock: "the client was unblocked",
}

/** Returns the error for the caller. The error says what failed, whether anything changed, and what to do. */
function correctionFailed(call: Correction, error: unknown): Error {
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
  if (isNotApplied) return `Nothing was changed, so you can call ${call} again.`
  const unknown = `It is unknown whether ${DONE[call]}.`
  if (call === "refund" || call === "settle") {
    return `${unknown} Another ${call} has no effect, because it could count the units twice.`
  }
  return `${unknown} You can call ${call} again.`
}
