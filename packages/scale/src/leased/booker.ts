import type { Store } from "@sluice/core"
import type { MaybePromise } from "@sluice/core/kit"
import type { StoreResult } from "@sluice/core/stores"
import type { Seen } from "../in-front/seen.ts"
import type { BackgroundRefunds } from "./background-refunds.ts"
import type { Lease } from "./lease.ts"

/** What a booker needs. */
export interface BookerParts {
  readonly store: Store
  /** Returns the monotonic time of this process. */
  readonly nowMs: () => number
  readonly refunds: BackgroundRefunds
  /** Called with each call in flight. */
  readonly track: (call: Promise<unknown>) => void
  /** Called when a lease has got units, which it will have to refund at some time. */
  readonly onBooked: (lease: Lease, nowMs: number) => void
}

/** Books units in the shared store. No request waits for a booking. */
export class Booker {
  /** Units that were booked so far. */
  booked = 0
  readonly #parts: BookerParts
  #roundTripMs = 0

  constructor(parts: BookerParts) {
    this.#parts = parts
  }

  /** Books units if the lease holds too few. The booking has the deadline of the request that triggers it. */
  book(lease: Lease, nowMs: number, withinMs: number | undefined): void {
    const units = lease.wanted(nowMs, this.#roundTripMs)
    if (units === 0) return
    lease.isBooking = true
    const { plain: policy, partition } = lease
    let answer: MaybePromise<StoreResult>
    try {
      answer = this.#parts.store.take([{ policy, partition, cost: units, shadow: false }], withinMs)
    } catch {
      this.#failed(lease)
      return
    }
    if (!(answer instanceof Promise)) {
      this.#answered(lease, units, answer, nowMs)
      return
    }
    const done = answer.then(
      (answered) => this.#answered(lease, units, answered, nowMs),
      () => this.#failed(lease),
    )
    this.#parts.track(done)
  }

  #answered(lease: Lease, units: number, answer: StoreResult, sentMs: number): void {
    const { refunds, nowMs, onBooked } = this.#parts
    lease.isBooking = false
    const counted = answer.checks[0]
    if (counted === undefined) {
      this.#failed(lease)
      return
    }
    const arrivedMs = nowMs()
    const seen: Seen = { state: counted.state, serverMs: answer.nowMs, sentMs, arrivedMs }
    if (!answer.granted || counted.taken !== units) {
      if (answer.isRemembered === true) lease.bookingFailed(arrivedMs)
      else lease.learn(seen, 0)
      return
    }
    this.booked += units
    this.#roundTripMs = arrivedMs - sentMs
    if (lease.ended === undefined) {
      refunds.add(lease.booked(units, seen))
      // The part may have ended while the reply was on its way.
      refunds.add(lease.bookings.expired(arrivedMs, false))
      onBooked(lease, arrivedMs)
    } else if (lease.ended === "refunded") {
      refunds.add([lease.bookings.refundOf(units, counted.state)])
    }
  }

  #failed(lease: Lease): void {
    lease.isBooking = false
    lease.bookingFailed(this.#parts.nowMs())
  }
}
