import type { Clock } from "../../ground/clock.ts"
import { StoreUnavailableError, sentenceOf } from "../../ground/errors.ts"
import { isThenable, type MaybePromise } from "../../ground/maybe-promise.ts"
import type { ChargeCounts, ChargesLostEvent, Refund, RefundLostEvent, Store } from "../store.ts"
import { storeErrorOf, withinDeadline } from "../store-error.ts"

/**
 * How long a charge may take, in milliseconds. It is longer than the time for a decision, because a data center may be
 * 300 ms away. It is short enough that charges do not pile up while a store does not answer.
 */
export const CHARGE_MS = 1_000

/** How events and messages name a store. */
export interface ChargedStore {
  /** The name of the data center; "" for the shared store of a store that writes back. */
  readonly to: string
  /** The start of a message: `The data center "eu"`. */
  readonly title: string
}

/** Most charges in one call. If the call fails, it is unknown which of them were applied. */
const MOST_CHARGES = 64

/** Charges units to a store in the background, and counts what was lost. No charge is sent twice. */
export class Charger {
  #lost = 0
  /** When the first of the latest charges was sent that failed in a row, and when the last one failed. */
  #failing: { readonly sinceMs: number; untilMs: number } | undefined
  readonly #store: Store
  readonly #clock: Clock
  readonly #names: ChargedStore
  readonly #onLost: (event: ChargesLostEvent | RefundLostEvent) => void

  constructor(
    store: Store,
    clock: Clock,
    names: ChargedStore,
    onLost: (event: ChargesLostEvent | RefundLostEvent) => void,
  ) {
    this.#store = store
    this.#clock = clock
    this.#names = names
    this.#onLost = onLost
  }

  get counts(): ChargeCounts {
    const { sinceMs, untilMs } = this.#failing ?? { sinceMs: 0, untilMs: 0 }
    return { lost: this.#lost, failingMs: untilMs - sinceMs }
  }

  /**
   * Sends the charges, 64 in a call. Never rejects. Returns those that were not confirmed. `keep` is called with each
   * charge that certainly was not applied, and returns true if the caller will send it again. Other charges are lost.
   */
  async charge(
    charges: readonly Refund[],
    keep: (charge: Refund) => boolean = () => false,
  ): Promise<readonly Refund[]> {
    const sentMs = this.#clock.now()
    const calls: Promise<readonly Refund[]>[] = []
    const lost: Refund[] = []
    let failure: unknown
    for (let i = 0; i < charges.length; i += MOST_CHARGES) {
      const some = charges.slice(i, i + MOST_CHARGES)
      const failed = (error: unknown): readonly Refund[] => {
        const isRepeatable = error instanceof StoreUnavailableError && error.outcome === "not-applied"
        const gone = some.filter((charge) => !isRepeatable || !keep(charge))
        if (gone.length > 0) failure = error
        lost.push(...gone)
        return some
      }
      const sent = beforeChargeDeadline(this.#store, () => this.#store.refund(some, CHARGE_MS))
      calls.push(sent.then(() => [], failed))
    }
    const unconfirmed = (await Promise.all(calls)).flat()
    if (unconfirmed.length === 0) {
      this.#failing = undefined
    } else {
      this.#failing ??= { sinceMs: sentMs, untilMs: sentMs }
      this.#failing.untilMs = this.#clock.now()
    }
    if (lost.length > 0) this.#tell(lost, failure)
    return unconfirmed
  }

  #tell(lost: readonly Refund[], cause: unknown): void {
    const { to, title } = this.#names
    let units = 0
    for (const one of lost) units += Math.max(0, -one.units)
    this.#lost += units
    const { kind, message } = storeErrorOf(cause)
    const what = units === 0 ? "refunds" : units === 1 ? "1 unit" : `${units} units`
    const text = `${title} did not confirm ${what}: ${sentenceOf(message)}`
    const error = new StoreUnavailableError(text, { kind, outcome: "unknown", cause })
    this.#onLost(units === 0 ? { type: "refund-lost", error } : { type: "charges-lost", to, units, error })
  }
}

/** Settles as a call of a store does, or rejects after the time for a charge. */
export async function beforeChargeDeadline<T>(store: Store, call: () => MaybePromise<T>): Promise<T> {
  const timeoutMs = store.keepsDeadline === true ? undefined : CHARGE_MS
  const answer = call()
  return isThenable(answer) ? withinDeadline(answer, timeoutMs, false) : answer
}
