import { type Clock, type Store, StoreUnavailableError } from "@sluice/core"
import type { MaybePromise } from "@sluice/core/kit"
import {
  BoundedTable,
  type Check,
  type CounterKey,
  type LeaseCounts,
  type Policy,
  type Refund,
  type StoreResult,
} from "@sluice/core/stores"
import { CallsInFlight } from "../in-front/calls-in-flight.ts"
import { Sweep } from "../in-front/sweep.ts"
import { BackgroundRefunds } from "./background-refunds.ts"
import { Booker } from "./booker.ts"
import { Lease } from "./lease.ts"
import type { ParsedLeasedOptions } from "./options.ts"
import type { SharedRequest } from "./shared-request.ts"
import { isLeasable } from "./sizing.ts"
import { SuspensionWatch } from "./suspension-watch.ts"

/** The most leases of a store, of about 500 bytes each. */
const MOST_LEASES = 10_000

/** The leases of a store. Books units in the shared store, and gives them back. */
export class Leases {
  readonly #store: Store
  readonly #options: ParsedLeasedOptions
  readonly #clock: Clock
  readonly #table = new BoundedTable<Lease>(MOST_LEASES)
  readonly #sweep: Sweep
  readonly #suspension: SuspensionWatch | undefined
  readonly #refunds: BackgroundRefunds
  readonly #booker: Booker
  readonly inFlight = new CallsInFlight()
  #granted = 0

  /** `onLost` is called with the error of each refund that failed. */
  constructor(store: Store, options: ParsedLeasedOptions, onLost: (error: unknown) => void) {
    this.#store = store
    this.#options = options
    this.#clock = options.clock
    const track = (call: Promise<unknown>): void => this.inFlight.add(call)
    this.#refunds = new BackgroundRefunds(store, track, onLost)
    this.#booker = new Booker({
      ...{ store, track, refunds: this.#refunds, nowMs: () => this.nowMs() },
      onBooked: (lease, nowMs) => this.#sweep.plan(lease.bookings.dueMs, nowMs),
    })
    this.#sweep = new Sweep(this.#clock, options.leaseMs / 10, (nowMs) => this.#refundUnused(nowMs))
    const { wallMs } = options
    if (wallMs !== undefined) this.#suspension = new SuspensionWatch(wallMs, this.nowMs())
  }

  /** The monotonic time of this process. */
  nowMs(): number {
    return this.#clock.now()
  }

  get counts(): LeaseCounts {
    const nowMs = this.nowMs()
    let held = 0
    let heldOff = 0
    for (const lease of this.#table) {
      held += lease.bookings.units
      if (lease.holdOff.isOn(nowMs)) heldOff++
    }
    const { returned, lost } = this.#refunds
    return { held, heldOff, granted: this.#granted, booked: this.#booker.booked, returned, lost }
  }

  /** False if the policy is certainly not leased. Cheap enough for every request. */
  mayLease({ limit }: Policy): boolean {
    return limit >= this.#options.leastLimit
  }

  /** Returns the lease of a counter, without expired units; undefined if the counter is not leased. */
  of(check: Check, nowMs: number): Lease | undefined {
    const { policy, partition } = check
    const lease = this.#table.find(policy.counter, partition)
    if (lease === undefined || !lease.isFor(policy)) return this.#open(check, lease, nowMs)
    if (lease.bookings.isStale(nowMs)) this.#refunds.add(lease.bookings.expired(nowMs, false))
    return lease
  }

  /** Returns the lease of a counter if it holds units for this limit now. */
  holding({ policy, partition }: CounterKey, nowMs: number): Lease | undefined {
    const lease = this.#table.find(policy.counter, partition)
    return lease === undefined || !lease.isFor(policy) || lease.bookings.isStale(nowMs) ? undefined : lease
  }

  #open(check: Check, before: Lease | undefined, nowMs: number): Lease | undefined {
    if (before !== undefined) this.#end(before)
    const { leaseMs, rules } = this.#options
    if (!isLeasable(check.policy, this.#options) || !rules(check.policy.name)) return undefined
    const least = this.#table.leastUsed()
    // With more counters in use than leases, each request would end the lease of another counter.
    if (least?.isInUse(nowMs) === true) return undefined
    if (least !== undefined) this.#end(least)
    const lease = new Lease(check, leaseMs)
    this.#table.add(lease)
    return lease
  }

  /** Counts units that a request got from a lease. */
  granted(units: number): void {
    this.#granted += units
  }

  /** Books units if the lease holds too few. The request does not wait for them. */
  book(lease: Lease, nowMs: number, withinMs: number | undefined): void {
    this.#booker.book(lease, nowMs, withinMs)
  }

  /** Asks the store for the checks that no lease covers. Returns units that were set aside if it does not grant them. */
  ask(request: SharedRequest, withinMs: number | undefined): MaybePromise<StoreResult> {
    const { rest } = request
    if (rest.length === 0) {
      this.#countGranted(request)
      this.#bookEach(request, withinMs)
      return request.granted()
    }
    let answer: MaybePromise<StoreResult>
    try {
      answer = this.#store.take(rest, withinMs)
    } catch (error) {
      this.#putBack(request)
      throw error
    }
    if (!(answer instanceof Promise)) return this.#answered(request, answer, withinMs)
    // The booking shares the next call of the store.
    this.#bookEach(request, withinMs)
    const whole = answer.then(
      (answered) => this.#answered(request, answered, withinMs),
      (error: unknown) => {
        this.#putBack(request)
        throw error
      },
    )
    if (request.aside.length > 0) this.inFlight.add(whole)
    return whole
  }

  #answered(request: SharedRequest, answer: StoreResult, withinMs: number | undefined): StoreResult {
    const whole = request.answered(answer, this.nowMs())
    if (whole.granted) this.#countGranted(request)
    else this.#putBack(request)
    this.#bookEach(request, withinMs)
    return whole
  }

  #countGranted({ aside }: SharedRequest): void {
    for (const { counted } of aside) this.#granted += counted.taken
  }

  #bookEach({ leases }: SharedRequest, withinMs: number | undefined): void {
    const nowMs = this.nowMs()
    for (const lease of leases) {
      if (lease.ended !== undefined) continue
      if (lease.bookings.isStale(nowMs)) this.#refunds.add(lease.bookings.expired(nowMs, false))
      this.#booker.book(lease, nowMs, withinMs)
    }
  }

  #putBack({ aside }: SharedRequest): void {
    const nowMs = this.nowMs()
    for (const one of aside) {
      const { lease, counted } = one
      if (lease.putBack(one, nowMs) || lease.ended === "reset") continue
      this.#refunds.add([lease.bookings.refundOf(counted.taken, counted.after ?? counted.state)])
    }
  }

  /** Takes a refund into the lease that holds units of its part. Returns false if the store must refund the units. */
  refund(refund: Refund): boolean {
    const lease = this.#table.find(refund.policy.counter, refund.partition)
    if (lease === undefined) return false
    lease.holdOff.end()
    return lease.refund(refund, this.nowMs())
  }

  /** Ends the leases of counters that are reset. Returns the refunds of what they held, which the store forgets. */
  drop(keys: readonly CounterKey[]): readonly Refund[] {
    const held: Refund[] = []
    for (const { policy, partition } of keys) {
      const lease = this.#table.find(policy.counter, partition)
      if (lease === undefined) continue
      this.#table.delete(lease)
      lease.ended = "reset"
      held.push(...lease.bookings.removeAll())
    }
    return held
  }

  /** Refunds what was held before a reset that failed, or counts it as lost if the reset may have been applied. */
  notReset(held: readonly Refund[], error: unknown): void {
    const isApplied = !(error instanceof StoreUnavailableError && error.outcome === "not-applied")
    if (isApplied) this.#refunds.lose(held, error)
    else this.#refunds.add(held)
  }

  /** Refunds everything that is held, after the calls in flight. */
  async close(): Promise<void> {
    this.#sweep.stop()
    while (!this.inFlight.isEmpty || this.#table.size > 0) {
      for (const lease of this.#table) this.#end(lease)
      await this.inFlight.settled()
    }
  }

  #end(lease: Lease): void {
    this.#table.delete(lease)
    lease.ended = "refunded"
    this.#refunds.add(lease.bookings.removeAll())
  }

  #refundUnused(nowMs: number): void {
    if (this.#suspension?.wasSuspended(nowMs) === true) {
      for (const lease of this.#table) this.#end(lease)
    }
    let dueMs = Number.POSITIVE_INFINITY
    for (const lease of this.#table) {
      this.#refunds.add(lease.bookings.expired(nowMs, true))
      dueMs = Math.min(dueMs, lease.bookings.dueMs)
      if (lease.isIdle(nowMs)) this.#table.delete(lease)
    }
    if (dueMs < Number.POSITIVE_INFINITY) this.#sweep.plan(dueMs, nowMs)
  }
}
