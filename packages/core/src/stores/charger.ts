import type { Clock } from "../ground/clock.ts"
import { StoreUnavailableError, sentenceOf } from "../ground/errors.ts"
import { isThenable, type MaybePromise } from "../ground/maybe-promise.ts"
import type { ChargeCounts, ChargesLostEvent, Refund, Store } from "./store.ts"
import { storeErrorOf, withinDeadline } from "./store-error.ts"

/**
 * How long a charge may take, in milliseconds. It is longer than the time for a decision, because a data center may be
 * 300 ms away. It is short enough that charges do not pile up while a store does not answer.
 */
export const CHARGE_MS = 1_000

/** Most charges in one call. If the call fails, it is unknown which of them were applied. */
const MOST_CHARGES = 64

/** Charges units to a store in the background, and counts what was lost. No charge is sent twice. */
export class Charger {
  #lost = 0
  #failingSinceMs: number | undefined
  readonly #store: Store
  readonly #clock: Clock
  readonly #title: string
  readonly #onLost: (event: ChargesLostEvent) => void

  /** `title` names the store at the start of a message: `The data center "eu"`. */
  constructor(store: Store, clock: Clock, title: string, onLost: (event: ChargesLostEvent) => void) {
    this.#store = store
    this.#clock = clock
    this.#title = title
    this.#onLost = onLost
  }

  get counts(): ChargeCounts {
    const sinceMs = this.#failingSinceMs
    return { lost: this.#lost, failingMs: sinceMs === undefined ? 0 : this.#clock.now() - sinceMs }
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
    if (unconfirmed.length === 0) this.#failingSinceMs = undefined
    else this.#failingSinceMs ??= sentMs
    if (lost.length > 0) this.#lose(lost, failure)
    return unconfirmed
  }

  #lose(lost: readonly Refund[], error: unknown): void {
    let units = 0
    for (const one of lost) units += Math.abs(one.units)
    this.#lost += units
    const { kind, message } = storeErrorOf(error)
    const text = `${this.#title} did not confirm ${units} ${units === 1 ? "unit" : "units"}: ${sentenceOf(message)}`
    this.#onLost({
      type: "charges-lost",
      units,
      error: new StoreUnavailableError(text, { kind, outcome: "unknown", cause: error }),
    })
  }
}

/** Settles as a call of a store does, or rejects after the time for a charge. */
export async function beforeChargeDeadline<T>(store: Store, call: () => MaybePromise<T>): Promise<T> {
  const timeoutMs = store.keepsDeadline === true ? undefined : CHARGE_MS
  const answer = call()
  return isThenable(answer) ? withinDeadline(answer, timeoutMs, false) : answer
}
