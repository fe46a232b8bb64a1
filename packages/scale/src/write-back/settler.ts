import { type Store, StoreUnavailableError } from "@sluice/core"
import { type CounterReading, type Refund, type StoreCondition, storeErrorOf } from "@sluice/core/stores"
import { CHARGE_MS, type Charger } from "../in-front/charger.ts"
import type { Charges } from "../in-front/charges.ts"
import type { ParsedWriteBackOptions } from "./options.ts"
import type { WrittenCounter } from "./written-counter.ts"

/** Number of counters that are settled together. If the shared store answers for none of them, that is one failure. */
export const SETTLED_TOGETHER = 64
/** Most counters whose settling begins at once, because each takes about 10 us. */
export const MOST_AT_ONCE = 1_024
/** Most counters that are being settled. A store that does not answer must not collect more calls than this. */
export const MOST_IN_FLIGHT: number = 4 * MOST_AT_ONCE
/** Number of settlings in a row that fail before answers say that they were decided without the shared counts. */
const FAILURES_UNTIL_DEGRADED = 3
/** Settlings may wait this long for an answer before answers say so. Longer than a charge may take, to give its error. */
const SILENT_UNTIL_DEGRADED_MS = CHARGE_MS + 200

const CONFIRMED: StoreCondition = {}
const FAILING: StoreCondition = { isRemembered: true }
const DEGRADED: StoreCondition = { isRemembered: true, isDegraded: true }

/** Called with each charge that certainly was not applied. Returns whether it will be sent again. */
type KeepCharge = (counter: WrittenCounter, charge: Refund) => boolean

/** Settles counters: charges their units to the shared store, and then asks for the shared counts. */
export class Settler {
  isClosing = false
  /** The server's time minus the time of this process, as the latest answer showed. */
  aheadMs = 0
  readonly #store: Store
  readonly #charger: Charger
  readonly #charges: Charges
  readonly #options: ParsedWriteBackOptions
  readonly #keep: KeepCharge
  #failures = 0
  #failedMs = Number.NEGATIVE_INFINITY
  /** Number of counters that are being settled, and since when there have been some without an answer. Pauses do not count. */
  #settling = 0
  #silentSinceMs = 0
  #silentMs = 0
  /** With the last error, as long as the shared store fails. */
  #degraded: StoreCondition = DEGRADED
  /** True if the last settling that failed got no reply at all. */
  #isSilent = false

  constructor(
    store: Store,
    charger: Charger,
    charges: Charges,
    options: ParsedWriteBackOptions,
    keep: KeepCharge,
  ) {
    this.#store = store
    this.#charger = charger
    this.#charges = charges
    this.#options = options
    this.#keep = keep
  }

  get condition(): StoreCondition {
    const silentMs = this.#settling > 0 ? this.#nowMs() - this.#silentSinceMs : this.#silentMs
    if (silentMs >= SILENT_UNTIL_DEGRADED_MS || this.#failures >= FAILURES_UNTIL_DEGRADED)
      return this.#degraded
    return this.isFailing ? FAILING : CONFIRMED
  }

  #nowMs(): number {
    return this.#options.clock.now()
  }

  get isFailing(): boolean {
    return this.#failures > 0
  }

  /** Number of counters whose settling may begin now. While the shared store fails, few are tried. */
  get most(): number {
    if (!this.isFailing) return Math.min(MOST_AT_ONCE, MOST_IN_FLIGHT - this.#settling)
    if (this.#settling > 0) return 0
    // The units of a charge without a reply are lost, so a single counter tries.
    return this.#isSilent ? 1 : SETTLED_TOGETHER
  }

  /** Settles counters together. Returns whether the shared store answered. */
  async settle(counters: readonly WrittenCounter[]): Promise<boolean> {
    const sentMs = this.#nowMs()
    if (this.#settling === 0) this.#silentSinceMs = sentMs - this.#silentMs
    this.#settling += counters.length
    const counterOf = new Map<Refund, WrittenCounter>()
    for (const counter of counters) {
      counter.isSettling = true
      counter.isDueAgain = false
      for (const charge of this.#charges.take(counter)) counterOf.set(charge, counter)
    }
    const unconfirmed = await this.#charger.charge(
      [...counterOf.keys()],
      (charge) => this.#keep(counterOf.get(charge) as WrittenCounter, charge),
      this.#failed,
    )
    const isCharged = unconfirmed.length < counterOf.size
    let isAnswered = isCharged || counterOf.size === 0
    // A server that did not reply to a charge would not reply with the count, either.
    const silent = new Set(this.#isSilent ? unconfirmed.map((charge) => counterOf.get(charge)) : [])
    const open = counters.filter((counter) => counter.ended === undefined && !silent.has(counter))
    if (open.length > 0 && !this.isClosing) {
      const isAlive = () => isCharged || this.#silentSinceMs > sentMs
      isAnswered = (await this.#learn(open, isAlive)) && isAnswered
    }
    for (const counter of counters) counter.isSettling = false
    this.#settling -= counters.length
    this.#noteAnswer(isAnswered, sentMs)
    return isAnswered
  }

  /**
   * Asks for the shared counts in one call. Returns whether any of them came. If the call fails, asks for each count
   * alone, because only one counter may be on a server that fails, or be unreadable. Does not do so if the store is
   * silent, where such calls would pile up. `isAlive` returns whether another call was answered meanwhile.
   */
  async #learn(counters: readonly WrittenCounter[], isAlive: () => boolean): Promise<boolean> {
    const sentMs = this.#nowMs()
    try {
      const checks = counters.map(({ policy, partition }) => ({ policy, partition, cost: 0, shadow: false }))
      const { nowMs: serverMs, counters: read } = await this.#store.read(checks, CHARGE_MS)
      const arrivedMs = this.#nowMs()
      for (const [i, counter] of counters.entries()) {
        const { state } = read[i] as CounterReading
        counter.settled({ state, serverMs, sentMs, arrivedMs })
        counter.refund(this.#charges.of(counter), arrivedMs)
        this.aheadMs = counter.aheadMs
      }
      return true
    } catch (error) {
      this.#failed(error)
      if (counters.length === 1) return false
      if (storeErrorOf(error).kind === "timeout" && !isAlive()) return false
      const each = await Promise.all(counters.map((counter) => this.#learn([counter], isAlive)))
      return each.some(Boolean)
    }
  }

  readonly #failed = (error: unknown): void => {
    const { message, kind } = storeErrorOf(error)
    this.#isSilent = kind === "timeout"
    const text = `The store decided without the shared counters: ${message}`
    if (this.#degraded.failure?.message === text) return
    const failure = new StoreUnavailableError(text, { kind: "unavailable", cause: error })
    this.#degraded = { ...DEGRADED, failure }
  }

  #noteAnswer(isAnswered: boolean, sentMs: number): void {
    const nowMs = this.#nowMs()
    if (isAnswered) this.#silentSinceMs = nowMs
    this.#silentMs = nowMs - this.#silentSinceMs
    if (isAnswered) this.#failures = 0
    // Settlings that were in flight together fail together, which is one failure.
    else if (this.#failures === 0 || sentMs >= this.#failedMs + this.#options.settleMs) {
      this.#failures++
      this.#failedMs = sentMs
    }
  }
}
