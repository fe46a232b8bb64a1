import type { Algorithm, CounterState } from "../../algorithms/algorithm.ts"
import { algorithmOf } from "../../algorithms/kinds.ts"
import { capacityOf, ceilingOf, type Policy } from "../../ground/policy.ts"
import type { Check, Counted, Refund } from "../store.ts"
import { leaseMsOf, nextHoldOffMs, partMsOf, sizeOf, withoutExtras } from "./sizing.ts"

/** Bounds the memory of a bucket that refills evenly: each of its bookings keeps its own end. */
const MOST_BOOKINGS = 16
/** Time in which a booking is processed besides its round trip, in milliseconds. */
const SLACK_MS = 2
/** How long to wait after a booking failed, in milliseconds. */
const AFTER_FAILURE_MS = 10

/** An answer of the shared store about one counter. Times of this process are of its monotonic clock. */
export interface Seen {
  readonly state: CounterState
  /** The server's time of the answer. */
  readonly serverMs: number
  /** When the call was sent, by the clock of this process. */
  readonly sentMs: number
  /** When the answer arrived, by the clock of this process. */
  readonly arrivedMs: number
}

/** Units that are held. All bookings of a part are one `Booking`. */
export interface Booking {
  /** Units that are held now. */
  units: number
  /** Units that this process has granted in the part: at most this number of units may return to the lease. */
  granted: number
  /** The counter's state right after the latest units were booked. */
  after: CounterState
  /** The units may be granted from this time of this process on, and before `untilMs`. */
  fromMs: number
  untilMs: number
}

/** Units of a lease that were set aside for a request whose other checks the store still has to decide. */
export interface SetAside {
  readonly lease: Lease
  readonly booking: Booking
  readonly counted: Counted
  /** The server's time of the state in `counted`. */
  readonly serverMs: number
}

/** A refusal that is repeated during the hold-off. */
interface Refused extends Seen {
  readonly cost: number
  readonly limit: number
  readonly ceiling: number
}

/**
 * What this process holds of one counter, and what it knows of the counter. Does no I/O: the caller books, gives back,
 * and passes the time of the process's monotonic clock as `nowMs`.
 */
export class Lease {
  readonly policy: Policy
  readonly partition: string
  /** T: unused units are given back this many milliseconds after the latest booking. */
  readonly leaseMs: number
  /** The policy of bookings. */
  readonly plain: Policy
  /** Set when the lease has ended: whether units that return later are given back to the store, or are gone. */
  ended: "given back" | "reset" | undefined
  /** True while a booking is in flight. */
  isBooking = false
  readonly #algorithm: Algorithm
  readonly #partMs: number | undefined
  /** The oldest booking comes first. Only a bucket that refills evenly has more than one. */
  #bookings: Booking[] = []
  #held = 0
  #seen: Seen | undefined
  /** When the current interval of T began, for the demand. */
  #intervalMs = Number.NEGATIVE_INFINITY
  #asked = 0
  #askedBefore = 0
  #refused: Refused | undefined
  #refusedMs = Number.NEGATIVE_INFINITY
  #holdOffMs = 0
  /** Units that the store granted since the last refusal. */
  #grantedSince = 0
  #bookAgainMs = Number.NEGATIVE_INFINITY

  constructor({ policy, partition }: Pick<Check, "policy" | "partition">, longestMs: number) {
    this.policy = policy
    this.partition = partition
    this.leaseMs = leaseMsOf(policy, longestMs)
    this.plain = withoutExtras(policy)
    this.#algorithm = algorithmOf(policy)
    this.#partMs = partMsOf(policy)
  }

  /** Units that are held. They may have expired already. */
  get held(): number {
    return this.#held
  }

  /** When the counter was last asked for, to within T. */
  get usedMs(): number {
    return this.#intervalMs
  }

  /** True if the lease is for this limit. Extra units do not matter, because a lease grants only below the limit. */
  isFor({ limit, burst }: Policy): boolean {
    return limit === this.policy.limit && burst === this.policy.burst
  }

  /** Adds to the demand. */
  ask(cost: number, nowMs: number): void {
    const sinceMs = nowMs - this.#intervalMs
    if (!(sinceMs >= 0 && sinceMs < this.leaseMs)) {
      const isNext = sinceMs >= 0 && sinceMs < 2 * this.leaseMs
      this.#askedBefore = isNext ? this.#asked : 0
      this.#asked = 0
      this.#intervalMs = isNext ? this.#intervalMs + this.leaseMs : nowMs
    }
    this.#asked = Math.min(this.#asked + cost, Number.MAX_SAFE_INTEGER)
  }

  /** Whether the held units cover the cost. Expired units must have been removed. */
  covers(cost: number): boolean {
    return cost <= this.#held && this.#bookings.length > 0
  }

  /**
   * Takes the units from the oldest booking, which names the part. Call it only if the lease covers them. Later refunds
   * apply to the part of `after`.
   */
  grant(cost: number, nowMs: number): SetAside {
    const booking = this.#bookings[0] as Booking
    this.#held -= cost
    booking.granted += cost
    if (cost <= booking.units) booking.units -= cost
    else this.#spendSeveral(cost)
    const serverMs = this.#serverMsAt(nowMs)
    const counted: Counted = {
      state: this.#stateAt(serverMs),
      taken: cost,
      after: booking.after,
      ageMs: Math.max(0, Math.ceil(nowMs - (this.#seen as Seen).sentMs)),
    }
    return { lease: this, booking, counted, serverMs }
  }

  #spendSeveral(cost: number): void {
    let missing = cost
    for (const booking of this.#bookings) {
      const spent = Math.min(missing, booking.units)
      booking.units -= spent
      missing -= spent
    }
    this.#bookings = this.#bookings.filter(({ units }, i) => units > 0 || i === this.#bookings.length - 1)
  }

  /** Returns a time that the server's clock has reached at least: the time of the answer plus the time since then. */
  #serverMsAt(nowMs: number): number {
    const { serverMs, arrivedMs } = this.#seen as Seen
    return serverMs + Math.max(0, Math.floor(nowMs - arrivedMs))
  }

  /** Returns the state of the latest answer, brought to the server's time, without the held units. */
  #stateAt(serverMs: number): CounterState {
    const { policy } = this
    return this.withoutHeld(this.#algorithm.at((this.#seen as Seen).state, policy, serverMs), serverMs)
  }

  /** Returns a state of the counter without the held units. */
  withoutHeld(state: CounterState, serverMs: number): CounterState {
    let left = state
    for (let i = 0; i < this.#bookings.length; i++) {
      const { units, after } = this.#bookings[i] as Booking
      if (units > 0) left = this.#algorithm.withoutUnits(left, this.policy, units, after, serverMs)
    }
    return left
  }

  /** Puts units back that were granted or set aside. Returns false if their booking is not held anymore. */
  putBack({ booking, counted }: SetAside, nowMs: number): boolean {
    if (this.ended !== undefined || !this.#bookings.includes(booking) || !isLive(booking, nowMs)) return false
    booking.units += counted.taken
    booking.granted -= counted.taken
    this.#held += counted.taken
    return true
  }

  /**
   * Takes back refunded units of the part that is held. Returns false if the store must refund them: the part has ended,
   * the units were taken above the limit, or this process did not grant as many.
   */
  refund({ policy, units, after }: Refund, nowMs: number): boolean {
    const booking = this.#bookings[0]
    if (booking === undefined || this.#partMs === undefined || !isLive(booking, nowMs)) return false
    if (!(units > 0 && units <= booking.granted) || (policy.extra ?? 0) > 0 || !this.isFor(policy))
      return false
    if (after.startMs !== booking.after.startMs) return false
    booking.units += units
    booking.granted -= units
    this.#held += units
    return true
  }

  /** Units asked of the counter within T, in the current or the previous interval. */
  get #demand(): number {
    return Math.max(this.#asked, this.#askedBefore)
  }

  /** True if less than half of the demand is held and no booking is in flight. Cheap enough for every request. */
  get isLow(): boolean {
    return !this.isBooking && 2 * this.#held < this.#demand
  }

  /** Returns the number of units to book now, 0 if none. */
  wanted(nowMs: number, roundTripMs: number): number {
    const seen = this.#seen
    if (!this.isLow || nowMs < this.#bookAgainMs || seen === undefined) return 0
    if (this.#bookings.length >= MOST_BOOKINGS) return 0
    const { plain, leaseMs } = this
    const serverMs = this.#serverMsAt(nowMs)
    const state = this.#algorithm.at(seen.state, plain, serverMs)
    const restMs =
      this.#partMs === undefined ? leaseMs : state.startMs + this.#partMs - latestServerMs(seen, nowMs)
    if (restMs < roundTripMs + SLACK_MS) return 0
    const left = capacityOf(plain) - this.#algorithm.used(state, plain, serverMs)
    return sizeOf({ demand: this.#demand, held: this.#held, left, restMs, leaseMs })
  }

  /**
   * Adds booked units. The part ends at a time of the server, which is compared with the latest that it can be. Returns
   * what to give back: units of another part.
   */
  booked(units: number, seen: Seen): Refund[] {
    const { state: after, serverMs, sentMs } = seen
    const endMs = this.#partMs === undefined ? serverMs + this.leaseMs : after.startMs + this.#partMs
    // Grant while the server's clock shows less than `endMs`. It shows at most serverMs + 1 + (now - sentMs), because the
    // reported time is a whole millisecond and the server decided after the call was sent.
    const untilMs = sentMs + endMs - serverMs - 1
    this.#grantedSince += units
    this.#seen = seen
    const latest = this.#bookings[0]
    const isSamePart = latest?.after.startMs === after.startMs
    const gone = this.#partMs === undefined || isSamePart ? [] : this.all()
    this.#held += units
    if (latest !== undefined && this.#partMs !== undefined && isSamePart) {
      Object.assign(latest, { units: latest.units + units, after, fromMs: sentMs, untilMs })
    } else this.#bookings.push({ units, granted: 0, after, fromMs: sentMs, untilMs })
    return gone
  }

  /** Stops booking for a moment, because a booking failed. */
  bookingFailed(nowMs: number): void {
    this.#bookAgainMs = nowMs + AFTER_FAILURE_MS
  }

  /** Learns the counter's state from an answer, unless an answer to a later call is known. */
  learn(seen: Seen, taken: number): void {
    this.#grantedSince += taken
    const booking = this.#bookings[0]
    const isSamePart = booking !== undefined && booking.after.startMs === seen.state.startMs
    if (isSamePart) booking.granted += taken
    if (this.#seen !== undefined && seen.sentMs < this.#seen.sentMs) return
    this.#seen = seen
    // The server has begun another part, so its clock was stepped: the held units are of the past.
    if (booking !== undefined && this.#partMs !== undefined && !isSamePart) booking.untilMs = booking.fromMs
  }

  /** Begins or prolongs the hold-off after the store has refused the check. */
  refuse({ policy, cost }: Check, seen: Seen): void {
    // Requests that were in flight together are refused together, which is one refusal. So is a refusal of a request that
    // the hold-off does not cover.
    if (seen.sentMs >= this.#refusedMs + this.#holdOffMs) {
      this.#holdOffMs = nextHoldOffMs(this.#holdOffMs, this.#grantedSince, this.leaseMs)
      this.#grantedSince = 0
      this.#refusedMs = seen.arrivedMs
      this.#bookAgainMs = Math.max(this.#bookAgainMs, seen.arrivedMs + this.#holdOffMs)
    } else if (this.#refused !== undefined && cost >= this.#refused.cost) return
    this.#refused = { ...seen, cost, limit: policy.limit, ceiling: ceilingOf(policy) }
  }

  /** Returns the milliseconds for which the check is refused without asking the store, 0 if it is not. */
  holdOffMs({ policy, cost, shadow }: Check, nowMs: number): number {
    const refused = this.#refused
    if (refused === undefined || shadow) return 0
    const sinceMs = nowMs - this.#refusedMs
    // If the clock went back, nothing is certain.
    if (!(sinceMs >= 0 && sinceMs < this.#holdOffMs)) return 0
    const isCovered =
      cost >= refused.cost && policy.limit <= refused.limit && ceilingOf(policy) <= refused.ceiling
    return isCovered ? Math.ceil(this.#holdOffMs - sinceMs) : 0
  }

  /** Returns the refusal that is repeated during the hold-off. */
  refusal(nowMs: number): { readonly serverMs: number; readonly counted: Counted } {
    const { state, serverMs, sentMs } = this.#refused as Refused
    return { serverMs, counted: { state, taken: 0, ageMs: Math.max(0, Math.ceil(nowMs - sentMs)) } }
  }

  /** Whether requests may be refused now without asking the store. */
  isHeldOff(nowMs: number): boolean {
    return this.#refused !== undefined && nowMs < this.#refusedMs + this.#holdOffMs
  }

  /** Ends the hold-off: units came back, so the store may admit again. */
  endHoldOff(): void {
    this.#refused = undefined
  }

  /** True if the lease holds nothing and has not been asked for a while, so that nothing is lost without it. */
  isIdle(nowMs: number): boolean {
    const isAsked = nowMs < this.#intervalMs + 2 * this.leaseMs
    return this.#bookings.length === 0 && !this.isBooking && !isAsked && !this.isHeldOff(nowMs)
  }

  /** When `expired` has something to return, by the clock of this process. Infinity if nothing is held. */
  get dueMs(): number {
    let dueMs = Number.POSITIVE_INFINITY
    for (const { fromMs, untilMs } of this.#bookings) dueMs = Math.min(dueMs, untilMs, fromMs + this.leaseMs)
    return dueMs
  }

  /** Whether a booking may be used up: its part has ended. Cheap enough for every request. */
  isStale(nowMs: number): boolean {
    const booking = this.#bookings[0]
    return booking !== undefined && !isLive(booking, nowMs)
  }

  /** Removes the bookings whose part has ended, and with `unused` those of T ago. Returns what to give back. */
  expired(nowMs: number, unused: boolean): Refund[] {
    return this.#remove(
      (booking) => !isLive(booking, nowMs) || (unused && nowMs >= booking.fromMs + this.leaseMs),
    )
  }

  /** Removes all bookings. Returns what to give back. */
  all(): Refund[] {
    return this.#remove(() => true)
  }

  #remove(isGone: (booking: Booking) => boolean): Refund[] {
    const gone = this.#bookings.filter(isGone)
    if (gone.length === 0) return []
    this.#bookings = this.#bookings.filter((booking) => !gone.includes(booking))
    const refunds: Refund[] = []
    for (const { units, after } of gone) {
      this.#held -= units
      if (units > 0) refunds.push(this.refundOf(units, after))
    }
    return refunds
  }

  /** Returns the refund of units of this lease's counter. */
  refundOf(units: number, after: CounterState): Refund {
    return { policy: this.plain, partition: this.partition, units, after }
  }
}

/** Returns the latest time that the server's clock may show. */
function latestServerMs({ serverMs, sentMs }: Seen, nowMs: number): number {
  return serverMs + 1 + Math.max(0, nowMs - sentMs)
}

function isLive({ fromMs, untilMs }: Booking, nowMs: number): boolean {
  return nowMs >= fromMs && nowMs < untilMs
}
