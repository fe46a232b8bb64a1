import { isThenable, type MaybePromise } from "../../ground/maybe-promise.ts"
import { beforeDeadline } from "../../ground/time.ts"
import type { Seen } from "../in-front/seen.ts"
import { BACKGROUND_REFUND_MS, type Store, type StoreResult } from "../store.ts"
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
    let answers: MaybePromise<readonly StoreResult[]>
    try {
      answers = this.#parts.store.take([[{ policy, partition, cost: units, shadow: false }]], withinMs)
    } catch {
      this.#failed(lease)
      return
    }
    if (isThenable(answers)) this.#await(Promise.resolve(answers), lease, units, { sentMs: nowMs, withinMs })
    else this.#answered(lease, units, answers[0], nowMs)
  }

  #await(
    answers: Promise<readonly StoreResult[]>,
    lease: Lease,
    units: number,
    {
      sentMs,
      withinMs = BACKGROUND_REFUND_MS,
    }: { readonly sentMs: number; readonly withinMs: number | undefined },
  ): void {
    const { store, track } = this.#parts
    let isLate = false
    const done = answers.then(
      (answered) => {
        if (isLate) this.#refundLate(lease, units, answered?.[0])
        else this.#answered(lease, units, answered?.[0], sentMs)
      },
      () => {
        if (!isLate) this.#failed(lease)
      },
    )
    const late = () => {
      isLate = true
      this.#failed(lease)
    }
    track(store.keepsDeadline === true ? done : beforeDeadline<void>(done, withinMs, late, false))
  }

  /** Refunds units that were booked after the deadline, by a store that has no deadline of its own. */
  #refundLate(lease: Lease, units: number, answer: StoreResult | undefined): void {
    const counted = answer?.granted === true ? answer.checks[0] : undefined
    if (counted === undefined || lease.ended === "reset") return
    this.#parts.refunds.add([lease.bookings.refundOf(units, counted.state)])
  }

  #answered(lease: Lease, units: number, answer: StoreResult | undefined, sentMs: number): void {
    const { refunds, nowMs, onBooked } = this.#parts
    lease.isBooking = false
    // A custom store may answer with anything.
    const counted = (answer as Partial<StoreResult> | undefined)?.checks?.[0]
    if (answer === undefined || counted === undefined) {
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
