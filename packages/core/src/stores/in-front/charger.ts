import type { Clock } from "../../ground/clock.ts"
import { StoreUnavailableError, sentenceOf } from "../../ground/errors.ts"
import type { ChargeCounts, ChargesLostEvent, Refund, Store } from "../store.ts"
import { storeErrorOf, withinDeadline } from "../store-error.ts"

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

  /** Sends the charges, 64 in a call. Never rejects. Returns those that may have been lost. */
  async charge(charges: readonly Refund[]): Promise<readonly Refund[]> {
    const sentMs = this.#clock.now()
    const calls: Promise<readonly Refund[]>[] = []
    let failure: unknown
    for (let i = 0; i < charges.length; i += MOST_CHARGES) {
      const some = charges.slice(i, i + MOST_CHARGES)
      const failed = (error: unknown): readonly Refund[] => {
        failure = error
        return some
      }
      calls.push(this.#send(some).then(() => [], failed))
    }
    const lost = (await Promise.all(calls)).flat()
    if (lost.length === 0) this.#failingSinceMs = undefined
    else this.#count(lost, failure, sentMs)
    return lost
  }

  async #send(charges: readonly Refund[]): Promise<void> {
    const timeoutMs = this.#store.keepsDeadline === true ? undefined : CHARGE_MS
    const done = this.#store.refund(charges, CHARGE_MS)
    if (done !== undefined) await withinDeadline(Promise.resolve(done), timeoutMs, false)
  }

  #count(lost: readonly Refund[], error: unknown, sentMs: number): void {
    let units = 0
    for (const one of lost) units += Math.abs(one.units)
    this.#lost += units
    this.#failingSinceMs ??= sentMs
    const { kind, message } = storeErrorOf(error)
    const text = `${this.#title} did not confirm ${units} ${units === 1 ? "unit" : "units"}: ${sentenceOf(message)}`
    this.#onLost({
      type: "charges-lost",
      units,
      error: new StoreUnavailableError(text, { kind, outcome: "unknown", cause: error }),
    })
  }
}
