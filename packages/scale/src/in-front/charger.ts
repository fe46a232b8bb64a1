import { setImmediate as nextTurn } from "node:timers/promises"
import { type Clock, type Store, StoreUnavailableError } from "@sluice/core"
import { sentenceOf } from "@sluice/core/kit"
import {
  type ChargeCounts,
  type ChargesLostEvent,
  type Refund,
  type RefundLostEvent,
  storeErrorOf,
} from "@sluice/core/stores"

/**
 * The timeout of a charge in milliseconds. It is longer than the timeout of a decision, because a data center may be
 * 300 ms away. It is short enough that charges do not pile up while a store does not respond.
 */
export const CHARGE_MS = 1_000

/** Number of charges that are sent before the event loop runs again, because each takes about 20 us. */
const SENT_AT_ONCE = 256

/** The timeout for charges of a store, and the store's name in events and messages. */
export interface ChargerNames {
  /** The timeout of each call in milliseconds. */
  readonly withinMs: number
  /** The name of the data center; "" for the shared store. */
  readonly to: string
  /**
   * The start of a message, such as `The data center "eu"`. If absent, failures are reported with their own message.
   */
  readonly title?: string
}

/**
 * Charges and refunds units in a store in the background, and counts lost units. Sends nothing twice.
 */
export class Charger {
  /** Refunded units that the store has confirmed. */
  returned = 0
  /** Units that the store has not confirmed. */
  readonly lost = { charged: 0, refunded: 0 }
  /** The time at which the first charge of the current run of failures was sent, and the time of the latest failure. */
  #failing: { readonly sinceMs: number; untilMs: number } | undefined
  /** By counter, the start of the latest window or bucket whose charges were lost. */
  readonly #lostMs = new Map<string, number>()
  readonly #store: Store
  readonly #clock: Clock
  readonly #names: ChargerNames
  readonly #onLost: (event: ChargesLostEvent | RefundLostEvent) => void

  constructor(
    store: Store,
    clock: Clock,
    names: ChargerNames,
    onLost: (event: ChargesLostEvent | RefundLostEvent) => void,
  ) {
    this.#store = store
    this.#clock = clock
    this.#names = names
    this.#onLost = onLost
  }

  get counts(): ChargeCounts {
    const { sinceMs, untilMs } = this.#failing ?? { sinceMs: 0, untilMs: 0 }
    return { lost: this.lost.charged, failingMs: untilMs - sinceMs }
  }

  /**
   * Sends each charge in a separate call, because a charge may be for a server that fails. Never rejects. Returns the
   * charges that were not confirmed, after it has called `failed` for each of them. Calls `keep` with each charge
   * that certainly was not applied. `keep` returns true if the caller will send the charge again; otherwise, the
   * charge is lost. Later refunds of lost units are not sent, because they would return units of other requests.
   */
  async charge(
    charges: readonly Refund[],
    keep: (charge: Refund) => boolean = () => false,
    failed: (error: unknown) => void = () => undefined,
  ): Promise<readonly Refund[]> {
    const sentMs = this.#clock.now()
    const lost: Refund[] = []
    const unconfirmed: Refund[] = []
    let failure: unknown
    const send = async (charge: Refund): Promise<void> => {
      try {
        await this.#store.refund([charge], this.#names.withinMs)
        this.returned += Math.max(0, charge.units)
      } catch (error) {
        failed(error)
        unconfirmed.push(charge)
        if (isNotApplied(error) && keep(charge)) return
        failure = error
        lost.push(charge)
      }
    }
    const sent: Promise<void>[] = []
    for (const charge of charges) {
      if (!this.#isKnown(charge)) continue
      sent.push(send(charge))
      if (sent.length % SENT_AT_ONCE === 0) await nextTurn()
    }
    await Promise.all(sent)
    if (unconfirmed.length > 0) {
      this.#failing ??= { sinceMs: sentMs, untilMs: sentMs }
      this.#failing.untilMs = this.#clock.now()
    } else if (sent.length > 0) {
      this.#failing = undefined
    }
    this.lose(lost, failure)
    return unconfirmed
  }

  /** False for a refund of units whose charge may have been lost. */
  #isKnown({ policy, units, after }: Refund): boolean {
    return units < 0 || after.startMs > (this.#lostMs.get(policy.counter) ?? Number.NEGATIVE_INFINITY)
  }

  /** Reports charges as lost. */
  lose(lost: readonly Refund[], cause: unknown): void {
    if (lost.length === 0) return
    let charged = 0
    for (const { policy, units, after } of lost) {
      const beforeMs = this.#lostMs.get(policy.counter) ?? after.startMs
      if (units < 0) this.#lostMs.set(policy.counter, Math.max(beforeMs, after.startMs))
      if (units < 0) charged -= units
      else this.lost.refunded += units
    }
    this.lost.charged += charged
    const error = this.#errorOf(charged, cause)
    if (charged === 0) this.#onLost({ type: "refund-lost", error })
    else this.#onLost({ type: "charges-lost", to: this.#names.to, units: charged, error })
  }

  #errorOf(charged: number, cause: unknown): StoreUnavailableError {
    const { title } = this.#names
    if (title === undefined) return storeErrorOf(cause)
    const { kind, message } = storeErrorOf(cause)
    const what = charged === 0 ? "refunds" : charged === 1 ? "1 unit" : `${charged} units`
    const text = `${title} did not confirm ${what}: ${sentenceOf(message)}`
    return new StoreUnavailableError(text, { kind, outcome: "unknown", cause })
  }
}

/** True if a call that failed has certainly changed nothing. */
export function isNotApplied(error: unknown): boolean {
  return error instanceof StoreUnavailableError && error.outcome === "not-applied"
}
