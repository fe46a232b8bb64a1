import type { Store } from "@sluice/core"
import { BACKGROUND_REFUND_MS, type Refund } from "@sluice/core/stores"

/** Refunds units to the shared store in the background, and counts what was returned or lost. */
export class BackgroundRefunds {
  /** Units that the store took back. */
  returned = 0
  /** Units that the store did not take back. */
  lost = 0
  readonly #store: Store
  readonly #track: (call: Promise<unknown>) => void
  readonly #onLost: (error: unknown) => void

  /** `track` is called with each call in flight, and `onLost` with the error of each that failed. */
  constructor(store: Store, track: (call: Promise<unknown>) => void, onLost: (error: unknown) => void) {
    this.#store = store
    this.#track = track
    this.#onLost = onLost
  }

  /** Applies refunds. Each refund is a call of its own, so that a failure does not lose the units of other counters. */
  add(refunds: readonly Refund[]): void {
    for (const refund of refunds) this.#add(refund)
  }

  /** Counts units as lost. */
  lose(refunds: readonly Refund[], error: unknown): void {
    for (const { units } of refunds) this.lost += units
    if (refunds.length > 0) this.#onLost(error)
  }

  #add(refund: Refund): void {
    const returned = (): void => {
      this.returned += refund.units
    }
    const lost = (error: unknown): void => this.lose([refund], error)
    try {
      const done = this.#store.refund([refund], BACKGROUND_REFUND_MS)
      if (done instanceof Promise) this.#track(done.then(returned, lost))
      else returned()
    } catch (error) {
      lost(error)
    }
  }
}
