import { type Store, StoreUnavailableError } from "@sluice/core"
import { beforeDeadline, type MaybePromise, sentenceOf } from "@sluice/core/kit"
import {
  type ChargeCounts,
  type CounterKey,
  foreignStore,
  type Refund,
  type StoreEvent,
  storeErrorOf,
} from "@sluice/core/stores"
import { CHARGE_MS, Charger } from "../in-front/charger.ts"
import { Charges } from "../in-front/charges.ts"
import { Sweep } from "../in-front/sweep.ts"
import type { ParsedMirroredOptions } from "./options.ts"

/**
 * The store of another data center. Units that this data center admits are charged to this store, one batch at a
 * time, so that no refund overtakes the charge of its units.
 */
export class Mirror {
  readonly name: string
  readonly store: Store
  readonly #clock: ParsedMirroredOptions["clock"]
  readonly #everyMs: number
  readonly #charger: Charger
  readonly #sweep: Sweep
  readonly #charges = new Charges()
  #sending: Promise<void> | undefined
  /** Number of resets that have not ended. No charges are sent during a reset. */
  #resets = 0
  #isClosing = false

  constructor(
    name: string,
    store: Store,
    { clock, everyMs }: Pick<ParsedMirroredOptions, "clock" | "everyMs">,
    onLost: (event: StoreEvent) => void,
  ) {
    this.name = name
    this.store = foreignStore(store)
    this.#clock = clock
    this.#everyMs = everyMs
    this.#charger = new Charger(
      this.store,
      clock,
      { withinMs: CHARGE_MS, to: name, title: this.#title },
      onLost,
    )
    this.#sweep = new Sweep(clock, everyMs, () => this.#send())
  }

  get counts(): ChargeCounts {
    return this.#charger.counts
  }

  /** Charges units with the next batch. A negative number is a refund. */
  add(key: CounterKey, units: number, after: Refund["after"]): void {
    if (this.#charges.isEmpty) this.#plan(this.#everyMs)
    this.#charges.add(key, units, after)
  }

  /** Resets counters and drops their pending charges, once the near store's reset (`near`) has ended. */
  async reset(keys: readonly CounterKey[], near: Promise<unknown>): Promise<void> {
    this.#resets++
    try {
      await this.#operate(async () => {
        await near.catch(() => undefined)
        for (const key of keys) this.#charges.take(key)
        // Wait for charges in flight, because they would count again if they arrived after the reset.
        await this.#sending
        await this.store.reset(keys, CHARGE_MS)
      })
    } finally {
      this.#resets--
      if (!this.#charges.isEmpty) this.#plan(0)
    }
  }

  /** Applies blocks and grants of operators. They do not wait for charges in flight, which do not affect them. */
  applyNow(ofOperator: readonly Refund[]): Promise<void> {
    return this.#operate(() => this.store.refund(ofOperator, CHARGE_MS))
  }

  /** Charges the pending units, and closes the store. */
  async close(): Promise<void> {
    this.#isClosing = true
    this.#sweep.stop()
    const charged = Promise.resolve(this.#sending).then(() => this.#charge())
    // The timer of the deadline keeps the process alive until the units are charged.
    await beforeDeadline(charged, 2 * CHARGE_MS, () => undefined)
    await this.store.close()
  }

  get #title(): string {
    return `The data center ${JSON.stringify(this.name)}`
  }

  #plan(afterMs: number): void {
    if (this.#isClosing) return
    const nowMs = this.#clock.now()
    this.#sweep.plan(nowMs + afterMs, nowMs)
  }

  #send(): void {
    if (this.#sending !== undefined || this.#resets > 0) return
    this.#sending = this.#charge().then(() => {
      this.#sending = undefined
      if (!this.#charges.isEmpty) this.#plan(0)
    })
  }

  async #charge(): Promise<void> {
    const charges = this.#charges.takeAll()
    if (charges.length > 0) await this.#charger.charge(charges)
  }

  /** Makes a call, and waits for at most a second until it ends. */
  async #operate(call: () => MaybePromise<void>): Promise<void> {
    try {
      const silence = `The store did not respond within ${CHARGE_MS} ms.`
      await beforeDeadline(Promise.resolve().then(call), CHARGE_MS, () =>
        Promise.reject(new StoreUnavailableError(silence, { kind: "timeout" })),
      )
    } catch (error) {
      const { kind, message } = storeErrorOf(error)
      const text = `${this.#title} did not confirm: ${sentenceOf(message)} Other data centers may have.`
      throw new StoreUnavailableError(text, { kind, outcome: "unknown", cause: error })
    }
  }
}
