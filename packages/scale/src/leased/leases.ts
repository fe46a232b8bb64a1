import type { Store } from "@sluice/core"
import type { MaybePromise } from "@sluice/core/kit"
import {
  BACKGROUND_REFUND_MS,
  type Check,
  type CounterKey,
  type CounterReading,
  type LeaseCounts,
  type Refund,
  type StoreCondition,
  type StoreReading,
  type StoreResult,
  type StoreStatus,
} from "@sluice/core/stores"
import { attempt } from "../in-front/calls.ts"
import { isNotApplied } from "../in-front/charger.ts"
import { isBeforePenalty, LocalStore } from "../in-front/local-store.ts"
import { refundOf } from "../in-front/split-request.ts"
import { heldOff, learnAnswer } from "./held-off.ts"
import { Lease, type LeasedRequest, type LeasedUnits } from "./lease.ts"
import type { ParsedLeasedOptions } from "./options.ts"
import { isLeasable } from "./sizing.ts"
import { SuspensionWatch } from "./suspension-watch.ts"

/** Maximum number of leases in a store. Each lease takes about 500 bytes. */
const MOST_LEASES = 10_000

/** A store whose local counters are leases. Units are booked in the shared store before they are granted. */
export class Leases extends LocalStore<Lease, LeasedUnits> {
  protected readonly condition: StoreCondition = { isRemembered: true }
  readonly #options: ParsedLeasedOptions
  readonly #suspension: SuspensionWatch | undefined
  #roundTripMs = 0
  #booked = 0
  #granted = 0

  constructor(store: Store, options: ParsedLeasedOptions) {
    const { clock, leaseMs, wallMs } = options
    const sizes = { clock, mostCounters: MOST_LEASES, pauseMs: leaseMs / 10 }
    super(store, { name: "leased store", withinMs: BACKGROUND_REFUND_MS, to: "", ...sizes })
    this.#options = options
    if (wallMs !== undefined) this.#suspension = new SuspensionWatch(wallMs, this.nowMs())
  }

  override get status(): StoreStatus {
    return { ...super.status, leases: this.#counts }
  }

  get #counts(): LeaseCounts {
    const nowMs = this.nowMs()
    let held = 0
    let heldOff = 0
    for (const lease of this.table) {
      held += lease.bookings.units
      if (lease.holdOff.isOn(nowMs)) heldOff++
    }
    const { returned, lost } = this.charger
    return {
      held,
      heldOff,
      granted: this.#granted,
      booked: this.#booked,
      returned,
      lost: lost.refunded,
    }
  }

  override take(checks: readonly Check[], withinMs?: number): MaybePromise<StoreResult> {
    const check = checks[0]
    const lease = check === undefined || checks.length > 1 ? undefined : this.find(check)
    return (lease && this.#grant(check as Check, lease, withinMs)) ?? super.take(checks, withinMs)
  }

  /**
   * Grants a request with a single check from its lease. Nearly all requests have a single check, and this path saves
   * two thirds of the time.
   */
  #grant(check: Check, lease: Lease, withinMs: number | undefined): StoreResult | undefined {
    const { policy, cost } = check
    const nowMs = this.nowMs()
    if (!lease.isFor(policy) || lease.bookings.isStale(nowMs) || !lease.covers(cost)) return undefined
    lease.ask(cost, nowMs)
    const { counted, serverMs } = lease.grant(cost, nowMs)
    this.#granted += cost
    if (lease.isLow) this.#book(lease, nowMs, withinMs)
    return { nowMs: serverMs, granted: true, checks: [counted], isRemembered: true }
  }

  /** Reads the shared counters. Units that this process holds count as remaining. */
  async read(checks: readonly Check[], withinMs?: number): Promise<StoreReading> {
    this.checkOpen()
    const reading = await this.wrapped.read(checks, withinMs)
    const nowMs = this.nowMs()
    const counters = reading.counters.map((counter, i): CounterReading => {
      const check = checks[i] as Check
      const lease = isBeforePenalty(checks, i) ? undefined : this.find(check)
      const holds = lease?.isFor(check.policy) === true && !lease.bookings.isStale(nowMs)
      // If a check costs more than the held units, the store decides the whole check, so report the store's state
      // unchanged.
      if (!holds || !lease.covers(check.cost)) return counter
      return { ...counter, state: lease.bookings.without(counter.state, reading.nowMs) }
    })
    return { ...reading, counters }
  }

  /** Returns the lease of a counter, without expired units; undefined if the counter is not leased. */
  protected counterOf(check: Check, nowMs: number): Lease | undefined {
    const { policy, cost } = check
    if (policy.limit < this.#options.leastLimit) return undefined
    let lease = this.find(check)
    if (lease === undefined || !lease.isFor(policy)) lease = this.#open(check, lease, nowMs)
    else if (lease.bookings.isStale(nowMs)) this.#giveBack(lease.bookings.expired(nowMs, false))
    lease?.ask(cost, nowMs)
    return lease
  }

  #open(check: Check, before: Lease | undefined, nowMs: number): Lease | undefined {
    if (before !== undefined) this.#end(before)
    const { leaseMs, rules } = this.#options
    if (!isLeasable(check.policy, this.#options) || !rules(check.policy.name)) return undefined
    const least = this.table.leastUsed()
    // Open no further lease, because each request would otherwise end the lease of another counter in use.
    if (least?.isInUse(nowMs) === true) return undefined
    if (least !== undefined) this.#end(least)
    const lease = new Lease(check, leaseMs)
    this.table.add(lease)
    return lease
  }

  protected setAside(request: LeasedRequest): StoreResult | undefined {
    const refusal = heldOff(request)
    if (refusal !== undefined) return refusal
    const { checks, counters, aside, nowMs } = request
    for (let i = 0; i < checks.length; i++) {
      const { cost } = checks[i] as Check
      const lease = counters[i]
      aside[i] = lease?.covers(cost) === true ? lease.grant(cost, nowMs) : undefined
    }
    return undefined
  }

  protected putBack(units: LeasedUnits): void {
    if (!units.counter.putBack(units, this.nowMs())) this.#giveBack([refundOf(units)])
  }

  protected answered(request: LeasedRequest, answer: StoreResult): StoreResult {
    const againAfterMs = learnAnswer(request, answer, this.nowMs())
    if (answer.granted) for (const one of request.aside) this.#granted += one?.counted.taken ?? 0
    this.asked(request)
    return againAfterMs > (answer.againAfterMs ?? 0) ? { ...answer, againAfterMs } : answer
  }

  /**
   * Books units for each lease that holds too few units. The store can send the booking in the same call as the
   * request.
   */
  protected override asked({ counters, withinMs }: LeasedRequest): void {
    const nowMs = this.nowMs()
    for (const lease of counters) {
      if (lease === undefined || lease.ended !== undefined) continue
      if (lease.bookings.isStale(nowMs)) this.#giveBack(lease.bookings.expired(nowMs, false))
      this.#book(lease, nowMs, withinMs)
    }
  }

  /**
   * Books units if the lease holds too few units. No request waits. The booking has the deadline of the request that
   * causes it.
   */
  #book(lease: Lease, sentMs: number, withinMs: number | undefined): void {
    const cost = lease.wanted(sentMs, this.#roundTripMs)
    if (cost === 0) return
    lease.isBooking = true
    const { policy, partition } = lease
    const call = attempt(
      () => this.wrapped.take([{ policy, partition, cost, shadow: false }], withinMs),
      (answer) => this.#bookingAnswered(lease, cost, answer, sentMs),
      () => lease.bookingFailed(this.nowMs()),
    )
    if (call instanceof Promise) this.inFlight.add(call)
  }

  #bookingAnswered(lease: Lease, units: number, answer: StoreResult, sentMs: number): void {
    const { nowMs: serverMs, granted, checks, isRemembered } = answer
    const arrivedMs = this.nowMs()
    const state = checks[0]?.state
    if (state === undefined || (!granted && isRemembered === true)) {
      lease.bookingFailed(arrivedMs)
      return
    }
    if (granted) {
      this.#booked += units
      this.#roundTripMs = arrivedMs - sentMs
    }
    this.#giveBack(lease.booked(granted ? units : 0, { state, serverMs, sentMs, arrivedMs }))
    this.sweep.plan(lease.bookings.dueMs, arrivedMs)
  }

  protected takeBack(refund: Refund, lease: Lease | undefined): boolean {
    lease?.holdOff.end()
    return lease?.refund(refund, this.nowMs()) === true
  }

  protected learnGrant(_grant: Refund, lease: Lease | undefined): void {
    lease?.holdOff.end()
  }

  /** Discards the held units, because the reset deletes them in the shared store. */
  protected drop(_key: CounterKey, lease: Lease | undefined): readonly Refund[] {
    return lease?.bookings.removeAll() ?? []
  }

  /** Refunds the units that were held before the reset, or counts them as lost if the reset may have been applied. */
  protected restore(held: readonly Refund[], error: unknown): void {
    if (isNotApplied(error)) this.#giveBack(held)
    else this.charger.lose(held, error)
  }

  protected async settleAll(): Promise<void> {
    while (!this.inFlight.isEmpty || this.table.size > 0) {
      for (const lease of this.table) this.#end(lease)
      await this.inFlight.settled()
    }
  }

  #end(lease: Lease): void {
    this.endCounter(lease, "settled")
    this.#giveBack(lease.bookings.removeAll())
  }

  #giveBack(refunds: readonly Refund[]): void {
    if (refunds.length > 0) this.inFlight.add(this.charger.charge(refunds))
  }

  protected sweepAt(nowMs: number): void {
    if (this.#suspension?.wasSuspended(nowMs) === true) {
      for (const lease of this.table) this.#end(lease)
    }
    let dueMs = Number.POSITIVE_INFINITY
    for (const lease of this.table) {
      this.#giveBack(lease.bookings.expired(nowMs, true))
      dueMs = Math.min(dueMs, lease.bookings.dueMs)
      if (lease.isIdle(nowMs)) this.table.delete(lease)
    }
    if (dueMs < Number.POSITIVE_INFINITY) this.sweep.plan(dueMs, nowMs)
  }
}
