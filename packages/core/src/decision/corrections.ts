import type { CounterState } from "../algorithms/algorithm.ts"
import { releases } from "../algorithms/kinds.ts"
import { ClosedError, StoreUnavailableError, sentenceOf } from "../ground/errors.ts"
import { LONGEST_TIMER_MS } from "../ground/time.ts"
import { BACKGROUND_REFUND_MS, type CounterKey, type Refund, type Store } from "../stores/store.ts"
import { isNotApplied, storeErrorOf } from "../stores/store-error.ts"
import type { Decision } from "./decision.ts"
import { DecisionRecord, HoldingDecision, type Receipt } from "./decision-record.ts"
import type { Ledger } from "./permits/ledger.ts"
import { receiptFor, refundsOf, settlementOf, type UsedUnits } from "./settlement.ts"

/** A call that changes counters without a decision. */
export type Correction = "refund" | "settle" | "renew" | "reset" | "block" | "unblock" | "grant"

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
  /**
   * Called after units of a decision, or of a reservation, were refunded or charged. `degraded` is true if they were taken
   * without the shared store.
   */
  readonly onCorrected: (refunds: readonly Refund[], degraded: boolean) => void
}

/** Refunds or charges units of decisions, releases their permits, and resets or blocks counters. */
export class Corrections {
  readonly #options: CorrectionOptions
  readonly #ledger: Ledger

  /** `ledger` contains the permits of the decisions. */
  constructor(options: CorrectionOptions, ledger: Ledger) {
    this.#options = options
    this.#ledger = ledger
  }

  /**
   * Refunds the units that the decision took, but not its permits. Only the first call has an effect. A no-op if no
   * units were taken. Returns the counters that have more units now. Rejects if the store fails. The refund can then be
   * retried only if it certainly changed nothing.
   */
  async refund(decision: Decision): Promise<readonly CounterKey[]> {
    return this.#correct("refund", decision, refundsOf)
  }

  /**
   * Releases the permits that the decision holds, or only those of the matching counters. Only the first call has an
   * effect. Returns the counters that have more permits now. Never rejects: permits that cannot be released end by
   * themselves.
   */
  async release(
    decision: Decision,
    isMeant?: (counter: CounterKey) => boolean,
  ): Promise<readonly CounterKey[]> {
    const holdings = HoldingDecision.takeHoldings(decision, isMeant)
    if (holdings.length === 0) return NONE
    try {
      await this.#ledger.release(holdings, backgroundMs(this.#options.storeTimeoutMs))
      return holdings
    } catch (error) {
      this.#options.onRefundLost(error)
      return NONE
    }
  }

  /**
   * Does the same as `refund` and `release`, for a call whose result no caller waits for. This refund may take longer
   * than `refund` and never rejects. With `isMeant`, it refunds only the matching counters, and the other
   * counters can be refunded later. Such a request was not admitted after all, so `onCorrected` is not called. Returns
   * the counters that have more units now.
   */
  async refundInBackground(
    decision: Decision,
    isMeant?: (counter: CounterKey) => boolean,
  ): Promise<readonly CounterKey[]> {
    const released = this.release(decision, isMeant)
    const receipt = DecisionRecord.takeReceipt(decision)
    if (receipt === undefined) return released
    let meant = receipt
    if (isMeant !== undefined) {
      meant = receiptFor(receipt, isMeant)
      const rest = receiptFor(receipt, (counter) => !isMeant(counter))
      DecisionRecord.leaveReceipt(decision, rest)
    }
    const withinMs = backgroundMs(this.#options.storeTimeoutMs)
    try {
      const refunds = refundsOf(meant)
      const refunded = await applyRefunds(receipt.store, refunds, withinMs)
      if (isMeant === undefined) this.#corrected(receipt.store, refunds)
      return [...refunded, ...(await released)]
    } catch (error) {
      this.#options.onRefundLost(error)
      return released
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

  /**
   * Takes the permit that marks a reservation as settled, and then applies the refunds and charges. Returns false if
   * the reservation was settled before. Rejects as `refund` does. If certainly nothing changed, the mark is given back,
   * so that the settlement can be retried.
   */
  async settleOnce(mark: CounterKey, refunds: readonly Refund[]): Promise<boolean> {
    const { store, storeTimeoutMs } = this.#options
    try {
      const { granted, checks } = await store.take([{ ...mark, cost: 1, shadow: false }], storeTimeoutMs)
      if (!granted) return false
      try {
        await applyRefunds(store, refunds, storeTimeoutMs)
        this.#corrected(store, refunds)
        return true
      } catch (error) {
        const { state: after = NOTHING } = checks[0] ?? {}
        const isOpen = isNotApplied(error) && (await this.#giveBack({ ...mark, units: 1, after }))
        // While the mark stays taken, a retry is refused. So the outcome is unknown to the caller.
        throw isOpen ? error : withUnknownOutcome(storeErrorOf(error))
      }
    } catch (error) {
      throw correctionFailed("settle", error)
    }
  }

  /** Gives back the mark of a settlement that changed nothing. Returns false if the mark may stay taken. */
  async #giveBack(mark: Refund): Promise<boolean> {
    const { store, storeTimeoutMs } = this.#options
    try {
      await store.refund([mark], backgroundMs(storeTimeoutMs))
      return true
    } catch {
      return false
    }
  }

  /**
   * Renews the permits of a reservation. Returns a lower bound of the store's time of the renewal. Returns undefined if
   * the reservation was settled before. Rejects as `refund` does.
   */
  async renewReserved(mark: CounterKey, renewals: readonly Refund[]): Promise<number | undefined> {
    const { store, storeTimeoutMs } = this.#options
    try {
      const { nowMs, counters } = await store.read([{ ...mark, cost: 1, shadow: false }], storeTimeoutMs)
      const { current = 0, previous = 0 } = counters[0]?.state ?? {}
      if (current + previous > 0) return undefined
      if (renewals.length > 0) await store.refund(renewals, storeTimeoutMs)
      return nowMs
    } catch (error) {
      throw correctionFailed("renew", error)
    }
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

  /**
   * Grants units in addition to the limits of the counters' current periods, or takes them back if `units` is negative.
   * Rejects as `reset` does.
   */
  async grant(keys: readonly CounterKey[], units: number): Promise<void> {
    const { store, storeTimeoutMs } = this.#options
    const grants = keys.map(({ policy, partition }): Refund => {
      return { policy: { ...policy, algorithm: "grant" }, partition, units, after: NOTHING }
    })
    try {
      await store.refund(grants, storeTimeoutMs)
    } catch (error) {
      throw correctionFailed("grant", error)
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
      const refunds = refundsFor(receipt)
      const refunded = await applyRefunds(receipt.store, refunds, this.#options.storeTimeoutMs)
      this.#corrected(receipt.store, refunds)
      return refunded
    } catch (error) {
      if (isNotApplied(error)) DecisionRecord.leaveReceipt(decision, receipt)
      throw correctionFailed(call, error)
    }
  }

  #corrected(store: Store, refunds: readonly Refund[]): void {
    const units = refunds.filter(({ policy }) => !releases(policy))
    if (units.length > 0) this.#options.onCorrected(units, store !== this.#options.store)
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

const DONE: Readonly<Record<Correction, string>> = {
  refund: "the units were refunded",
  settle: "the units were corrected",
  renew: "the permits were renewed",
  reset: "the counters were reset",
  block: "the client was blocked",
  unblock: "the client was unblocked",
  grant: "the units were granted",
}

function withUnknownOutcome({ message, kind, cause }: StoreUnavailableError): StoreUnavailableError {
  return new StoreUnavailableError(message, { kind, cause, outcome: "unknown" })
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
  if (call === "grant") return `${unknown} Call peek before another grant, and compare granted in its checks.`
  return `${unknown} You can call ${call} again.`
}
