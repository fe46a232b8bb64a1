import {
  type Algorithm,
  algorithmOf,
  type CounterKey,
  type CounterState,
  type Refund,
} from "@sluice/core/stores"
import { endOfThisProcessMs, type Seen } from "../in-front/seen.ts"
import { partMsOf } from "./sizing.ts"

/** Bounds the memory of a bucket that refills evenly: each of its bookings keeps its own end. */
const MOST_BOOKINGS = 16

/** Units that are held. All units of a part are one booking. */
export interface Booking {
  /** Units that are held now. */
  units: number
  /** Units that this process has granted in the part: at most this number of units may return to the booking. */
  granted: number
  /** The counter's state right after the latest units were booked. */
  after: CounterState
  /** The units may be granted from this time until `untilMs`, by the clock of this process. */
  fromMs: number
  untilMs: number
}

/** Units that were taken from a booking. */
export interface Spent {
  /** The oldest booking that the units were taken from. */
  readonly booking: Booking
  /** The state to which a refund of the units refers. */
  readonly after: CounterState
  /** Units that were left in the booking. */
  readonly left: number
}

/** Units that were booked in the shared store, and when each of them expires. */
export class Bookings {
  readonly #algorithm: Algorithm
  readonly #counter: CounterKey
  readonly #leaseMs: number
  readonly #partMs: number | undefined
  /** True if a refund depends on the level of the counter, not only on the part. */
  readonly #isBucket: boolean
  /** The oldest booking comes first. Only a bucket that refills evenly has more than one. */
  #all: Booking[] = []
  #units = 0

  /** `leaseMs` is T in milliseconds. */
  constructor(counter: CounterKey, leaseMs: number) {
    this.#algorithm = algorithmOf(counter.policy)
    this.#counter = counter
    this.#leaseMs = leaseMs
    this.#partMs = partMsOf(counter.policy)
    this.#isBucket = counter.policy.algorithm === "token-bucket"
  }

  /** Units that are held. Some of them may have expired, until `expired` removes them. */
  get units(): number {
    return this.#units
  }

  get isEmpty(): boolean {
    return this.#all.length === 0
  }

  get isFull(): boolean {
    return this.#all.length >= MOST_BOOKINGS
  }

  /** When `expired` has something to return, by the clock of this process. Infinity if there is no booking. */
  get dueMs(): number {
    let dueMs = Number.POSITIVE_INFINITY
    for (const { fromMs, untilMs } of this.#all) dueMs = Math.min(dueMs, untilMs, fromMs + this.#leaseMs)
    return dueMs
  }

  /** Whether the oldest booking has expired. Cheap enough for every request. */
  isStale(nowMs: number): boolean {
    const oldest = this.#all[0]
    return oldest !== undefined && !isLive(oldest, nowMs)
  }

  /** Takes units, of the oldest booking first. Call it only if there are enough. */
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
    // Units of several bookings do not return to one of them.
    if (isOfSeveral) this.#all = this.#all.filter((one, i) => one.units > 0 || i === this.#all.length - 1)
    // The level that the oldest booking left is the safe receipt for all units: less of it is still in use.
    return { booking, after: this.#isBucket ? below(booking) : booking.after, left: booking.units }
  }

  /** Puts units back into their booking. Returns false if the store has to take them back. */
  putBack({ booking, left }: Spent, units: number, nowMs: number): boolean {
    // In a bucket, other units of the booking have receipts that depend on the order in which they were spent.
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
   * Takes refunded units of the part that is held. Returns false if the store must refund them, because their part has
   * ended or this process did not grant as many in it.
   */
  refund({ units, after }: Refund, nowMs: number): boolean {
    const booking = this.#all[0]
    if (booking === undefined || this.#isBucket || after.startMs !== booking.after.startMs) return false
    return units > 0 && units <= booking.granted && this.#add(booking, units, nowMs)
  }

  /** Adds booked units. Returns the refunds of units of another part. */
  add(units: number, seen: Seen): Refund[] {
    const { state: after, serverMs, sentMs: fromMs } = seen
    // A bucket that refills evenly has no parts, so a booking ends after T.
    const endMs = this.#partMs === undefined ? serverMs + this.#leaseMs : after.startMs + this.#partMs
    const untilMs = endOfThisProcessMs(seen, endMs)
    const held = this.#all[0]
    const isSamePart = this.#partMs !== undefined && held?.after.startMs === after.startMs
    const gone = this.#partMs === undefined || isSamePart ? [] : this.removeAll()
    this.#units += units
    if (held !== undefined && isSamePart) {
      Object.assign(held, { units: held.units + units, after, fromMs, untilMs })
    } else this.#all.push({ units, granted: 0, after, fromMs, untilMs })
    return gone
  }

  /** Learns that the store has granted units to a request, or nothing, and in which part it counts. */
  learn({ state }: Seen, taken: number): void {
    const booking = this.#all[0]
    if (booking === undefined || this.#partMs === undefined) return
    if (booking.after.startMs === state.startMs) booking.granted += taken
    // The server has begun another part. The booking is of the past, even if the server's clock was stepped.
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

  /** Removes what has expired, and with `unused` also what was booked T ago. Returns the refunds. */
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
    // Each booking has its own receipt. The refund of a bucket depends on the level that the booking left.
    const { policy, partition } = this.#counter
    return gone
      .filter(({ units }) => units > 0)
      .map(({ units, after }) => ({ policy, partition, units, after }))
  }
}

/**
 * Returns the level of a bucket below the units that are left in a booking. The units of a booking are spent from the
 * bottom of its level up. Each refund of a part of them then has its own share of the level: with one receipt for all,
 * each refund would take back the top of the level again.
 */
function below({ after, units }: Booking): CounterState {
  return { ...after, current: Math.max(0, after.current - units) }
}

function isLive({ fromMs, untilMs }: Booking, nowMs: number): boolean {
  return nowMs >= fromMs && nowMs < untilMs
}
