import {
  algorithmOf,
  type Counted,
  type CounterKey,
  capacityOf,
  type Policy,
  type Refund,
} from "@sluice/core/stores"
import type { LocalCounter } from "../in-front/local-store.ts"
import { ageMsOf, latestServerMs, reachedServerMs, type Seen } from "../in-front/seen.ts"
import type { SetAside, SplitRequest } from "../in-front/split-request.ts"
import { Bookings, type Spent } from "./bookings.ts"
import { Demand } from "./demand.ts"
import { HoldOff } from "./hold-off.ts"
import { leaseMsOf, partEndMs, sizeOf, withoutExtras } from "./sizing.ts"

/** Time in milliseconds for processing a booking, in addition to its round trip. */
const SLACK_MS = 2
/** Milliseconds to wait after a booking has failed. */
const AFTER_FAILURE_MS = 10

/**
 * Units of a lease that are granted to a request, or set aside until the store has decided the request's other
 * checks.
 */
export interface LeasedUnits extends SetAside<Lease> {
  readonly spent: Spent
}

/** A request some or all of whose checks may be covered by leases. */
export type LeasedRequest = SplitRequest<Lease, LeasedUnits>

/**
 * The units of one counter that this process holds, and the counter's last known state. A lease does no I/O. The
 * caller books and returns units, and passes the time of the process's monotonic clock as `nowMs`.
 */
export class Lease implements LocalCounter {
  /** The policy of bookings. */
  readonly policy: Policy
  readonly partition: string
  readonly bookings: Bookings
  readonly holdOff: HoldOff
  ended: LocalCounter["ended"]
  /** True while a booking is in flight. */
  isBooking = false
  /** T in milliseconds. */
  readonly #leaseMs: number
  readonly #demand: Demand
  #seen: Seen | undefined
  #bookAgainMs = Number.NEGATIVE_INFINITY

  /** `longestMs` is the option `leaseMs`. */
  constructor({ policy, partition }: CounterKey, longestMs: number) {
    const leaseMs = leaseMsOf(policy, longestMs)
    this.policy = withoutExtras(policy)
    this.partition = partition
    this.bookings = new Bookings(this, leaseMs)
    this.holdOff = new HoldOff(leaseMs)
    this.#leaseMs = leaseMs
    this.#demand = new Demand(leaseMs)
  }

  /** The time of the latest request for the counter, to within T. */
  get usedMs(): number {
    return this.#demand.startedMs
  }

  /**
   * True if the lease is for this limit and for these calendar periods, which move on with time. Extra units above the
   * limit do not matter, because a lease never grants them.
   */
  isFor({ limit, burst, periods }: Policy): boolean {
    const { policy } = this
    return limit === policy.limit && burst === policy.burst && periods === policy.periods
  }

  /** Adds a cost to the demand. */
  ask(cost: number, nowMs: number): void {
    this.#demand.add(cost, nowMs)
  }

  /** True if the held units cover the cost. Expired units must have been removed. */
  covers(cost: number): boolean {
    return cost <= this.bookings.units && !this.bookings.isEmpty
  }

  /** Takes units. Call it only if the lease covers the cost. Later refunds apply to the part of the state `after`. */
  grant(cost: number, nowMs: number): LeasedUnits {
    const spent = this.bookings.spend(cost)
    const seen = this.#seen as Seen
    const serverMs = reachedServerMs(seen, nowMs)
    const { policy } = this
    const counted: Counted = {
      state: this.bookings.without(algorithmOf(policy).at(seen.state, policy, serverMs), serverMs),
      taken: cost,
      after: spent.after,
      ageMs: ageMsOf(seen.sentMs, nowMs),
    }
    return { counter: this, spent, counted, serverMs }
  }

  /** Puts back units of a request that was not granted. Returns false if their booking is no longer held. */
  putBack({ spent, counted }: LeasedUnits, nowMs: number): boolean {
    return this.ended === undefined && this.bookings.putBack(spent, counted.taken, nowMs)
  }

  /** Takes refunded units. Returns false if the store must refund them. */
  refund(refund: Refund, nowMs: number): boolean {
    // Units that were taken above the limit do not come from a lease, because a lease grants only units below the
    // limit.
    const isBelowLimit = (refund.policy.extra ?? 0) === 0
    return isBelowLimit && this.isFor(refund.policy) && this.bookings.refund(refund, nowMs)
  }

  /**
   * True if less than half of the demand is held and no booking is in flight. This check is cheap enough for every
   * request.
   */
  get isLow(): boolean {
    return !this.isBooking && 2 * this.bookings.units < this.#demand.units
  }

  /** Returns the number of units to book now, or 0. `roundTripMs` is the duration of a booking. */
  wanted(nowMs: number, roundTripMs: number): number {
    const seen = this.#seen
    if (!this.isLow || nowMs < this.#bookAgainMs || seen === undefined) return 0
    if (this.bookings.isFull || this.holdOff.isOn(nowMs)) return 0
    const leaseMs = this.#leaseMs
    const { policy } = this
    const algorithm = algorithmOf(policy)
    const serverMs = reachedServerMs(seen, nowMs)
    const state = algorithm.at(seen.state, policy, serverMs)
    const endMs = partEndMs(policy, state)
    const restMs = endMs === undefined ? leaseMs : endMs - latestServerMs(seen, nowMs)
    if (restMs < roundTripMs + SLACK_MS) return 0
    const left = capacityOf(policy) - algorithm.used(state, policy, serverMs)
    return sizeOf({ demand: this.#demand.units, held: this.bookings.units, left, restMs, leaseMs })
  }

  /**
   * Adds booked units. `units` is 0 if the booking was refused. Returns refunds for units that the lease does not
   * hold.
   */
  booked(units: number, seen: Seen): Refund[] {
    this.isBooking = false
    if (units === 0) this.learn(seen, 0)
    if (units === 0 || this.ended === "reset") return []
    const { policy, partition } = this
    if (this.ended !== undefined) return [{ policy, partition, units, after: seen.state }]
    this.holdOff.granted(units)
    this.#seen = seen
    // The part may have ended while the reply was in flight.
    return [...this.bookings.add(units, seen), ...this.bookings.expired(seen.arrivedMs, false)]
  }

  /** Stops booking for a moment, because a booking has failed. */
  bookingFailed(nowMs: number): void {
    this.isBooking = false
    this.#bookAgainMs = nowMs + AFTER_FAILURE_MS
  }

  /** Records the counter's state from a reply of the store, unless a reply to a later call has already arrived. */
  learn(seen: Seen, taken: number): void {
    this.holdOff.granted(taken)
    if (this.#seen !== undefined && seen.sentMs < this.#seen.sentMs) return
    this.#seen = seen
    this.bookings.learn(seen, taken)
  }

  /** True if a request asked for the counter within the past 2 T. */
  isInUse(nowMs: number): boolean {
    return nowMs < this.usedMs + 2 * this.#leaseMs
  }

  /** True if the lease holds no units and is not in use, so it can be removed without a loss. */
  isIdle(nowMs: number): boolean {
    return this.bookings.isEmpty && !this.isBooking && !this.isInUse(nowMs) && !this.holdOff.isOn(nowMs)
  }
}
