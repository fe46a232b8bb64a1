import {
  type Algorithm,
  algorithmOf,
  type CounterKey,
  type CounterState,
  type Refund,
} from "@sluice/core/stores"
import { endOfThisProcessMs, type Seen } from "../in-front/seen.ts"
import { partEndMs } from "./sizing.ts"

/**
 * Maximum number of bookings. It bounds the memory of a bucket that refills evenly, because each of its bookings ends
 * separately.
 */
const MOST_BOOKINGS = 16

/** Units that are held. All units of the same part form one booking. */
export interface Booking {
  /** Units that are held now. */
  units: number
  /** Units that this process has granted in the part. At most this number of units may return to the booking. */
  granted: number
  /** The counter's state right after the latest units were booked. */
  after: CounterState
  /** The units may be granted from this time until `untilMs`, by the clock of this process. */
  fromMs: number
  untilMs: number
}

/** Units that were taken from a booking. */
export interface Spent {
  /** The oldest booking from which the units were taken. */
  readonly booking: Booking
  /** The state to which a refund of the units refers. */
  readonly after: CounterState
  /** Units that were left in the booking. */
  readonly left: number
}

/** Units that were booked in the shared store, and the times when they expire. */
export class Bookings {
  readonly #algorithm: Algorithm
  readonly #counter: CounterKey
  readonly #leaseMs: number
  /** True if a refund depends on the level of the counter, not only on the part. */
  readonly #isBucket: boolean
  /** The oldest booking comes first. Only a bucket that refills evenly has more than one booking. */
  #all: Booking[] = []
  #units = 0

  /** `leaseMs` is T in milliseconds. */
  constructor(counter: CounterKey, leaseMs: number) {
    this.#algorithm = algorithmOf(counter.policy)
    this.#counter = counter
    this.#leaseMs = leaseMs
    this.#isBucket = counter.policy.algorithm === "token-bucket"
  }

  /** Units that are held. This includes expired units until `expired` removes them. */
  get units(): number {
    return this.#units
  }

  get isEmpty(): boolean {
    return this.#all.length === 0
  }

  get isFull(): boolean {
    return this.#all.length >= MOST_BOOKINGS
  }

  /** The time by the clock of this process at which `expired` may return units. Infinity if there is no booking. */
  get dueMs(): number {
    let dueMs = Number.POSITIVE_INFINITY
    for (const { fromMs, untilMs } of this.#all) dueMs = Math.min(dueMs, untilMs, fromMs + this.#leaseMs)
    return dueMs
  }

  /** True if the oldest booking has expired. This check is cheap enough for every request. */
  isStale(nowMs: number): boolean {
    const oldest = this.#all[0]
    return oldest !== undefined && !isLive(oldest, nowMs)
  }

  /** Takes units, beginning with the oldest booking. Call it only if enough units are held. */
  spend(units: number): Spent {
    const booking = this.#all[0] as Booking
    this.#units -= units
    booking.granted += units
    const isOfSeveral = units > booking.units
    let missing = units
    for (let i = 0; missing > 0; i++) {
      const one = this.#all[i] as Booking
      const spent = Math.min(missing, one.units)
      one.units -= spent
      missing -= spent
    }
    // Units from several bookings cannot return to a single booking, so remove the empty bookings.
    if (isOfSeveral) this.#all = this.#all.filter((one, i) => one.units > 0 || i === this.#all.length - 1)
    // Let refunds of all these units refer to the level after the oldest booking. This is safe, because less of that
    // level is still in use.
    return { booking, after: this.#isBucket ? below(booking) : booking.after, left: booking.units }
  }

  /** Puts units back into their booking. Returns false if the store must refund the units. */
  putBack({ booking, left }: Spent, units: number, nowMs: number): boolean {
    // In a bucket, the refunds of the booking's other units depend on the order in which the units were spent.
    if (this.#isBucket && booking.units !== left) return false
    return this.#add(booking, units, nowMs)
  }

  #add(booking: Booking, units: number, nowMs: number): boolean {
    if (!this.#all.includes(booking) || !isLive(booking, nowMs)) return false
    booking.units += units
    booking.granted -= units
    this.#units += units
    return true
  }

  /**
   * Adds refunded units to the booking of their part. Returns false if the store must refund them, because the part
   * has ended or because this process granted fewer units in the part.
   */
  refund({ units, after }: Refund, nowMs: number): boolean {
    const booking = this.#all[0]
    if (booking === undefined || this.#isBucket || after.startMs !== booking.after.startMs) return false
    return units > 0 && units <= booking.granted && this.#add(booking, units, nowMs)
  }

  /** Adds booked units. Returns refunds for held units of another part. */
  add(units: number, seen: Seen): Refund[] {
    const { state: after, serverMs, sentMs: fromMs } = seen
    // A bucket that refills evenly has no parts, so a booking ends after T.
    const endMs = partEndMs(this.#counter.policy, after)
    const untilMs = endOfThisProcessMs(seen, endMs ?? serverMs + this.#leaseMs)
    const held = this.#all[0]
    const isSamePart = endMs !== undefined && held?.after.startMs === after.startMs
    const gone = endMs === undefined || isSamePart ? [] : this.removeAll()
    this.#units += units
    if (held !== undefined && isSamePart) {
      Object.assign(held, { units: held.units + units, after, fromMs, untilMs })
    } else this.#all.push({ units, granted: 0, after, fromMs, untilMs })
    return gone
  }

  /** Records how many units the store has granted to a request, and the part in which the store counts. */
  learn({ state }: Seen, taken: number): void {
    const booking = this.#all[0]
    if (booking === undefined || partEndMs(this.#counter.policy, state) === undefined) return
    if (booking.after.startMs === state.startMs) booking.granted += taken
    // The server has begun another part, so the booking has ended, even if the server's clock was stepped.
    else booking.untilMs = booking.fromMs
  }

  /** Returns a state of the counter at the server's time, without the held units. */
  without(state: CounterState, serverMs: number): CounterState {
    let left = state
    for (let i = 0; i < this.#all.length; i++) {
      const { units, after } = this.#all[i] as Booking
      if (units > 0) left = this.#algorithm.withoutUnits(left, this.#counter.policy, units, after, serverMs)
    }
    return left
  }

  /**
   * Removes units that have expired. If `unused` is true, also removes units that were booked T ago. Returns the
   * refunds.
   */
  expired(nowMs: number, unused: boolean): Refund[] {
    return this.#remove(
      (booking) => !isLive(booking, nowMs) || (unused && nowMs >= booking.fromMs + this.#leaseMs),
    )
  }

  /** Removes everything. Returns the refunds. */
  removeAll(): Refund[] {
    return this.#remove(() => true)
  }

  #remove(isGone: (booking: Booking) => boolean): Refund[] {
    const gone = this.#all.filter(isGone)
    if (gone.length === 0) return []
    this.#all = this.#all.filter((booking) => !gone.includes(booking))
    for (const { units } of gone) this.#units -= units
    // Refund each booking separately, because the refund of a bucket depends on the level after its booking.
    const { policy, partition } = this.#counter
    return gone
      .filter(({ units }) => units > 0)
      .map(({ units, after }) => ({ policy, partition, units, after }))
  }
}

/**
 * Returns the level of a bucket below the units that are left in a booking. The units of a booking are spent from the
 * bottom of its level up, so each partial refund refers to a different part of the level. With the same state for all
 * refunds, each refund would remove the top of the level again.
 */
function below({ after, units }: Booking): CounterState {
  return { ...after, current: Math.max(0, after.current - units) }
}

function isLive({ fromMs, untilMs }: Booking, nowMs: number): boolean {
  return nowMs >= fromMs && nowMs < untilMs
}
