import {
  algorithmOf,
  type Check,
  type CounterKey,
  type CounterState,
  capacityOf,
  chargeable,
  type Policy,
  type Refund,
} from "@sluice/core/stores"
import type { LocalCounter } from "../in-front/local-store.ts"
import { ageMsOf, type Seen } from "../in-front/seen.ts"

/**
 * The local copy of one counter. It consists of the shared count at the latest settlement, and the units of this
 * process that this count does not include. The class does no I/O. The caller settles, and passes the time of the
 * process's monotonic clock as `nowMs`.
 */
export class WrittenCounter implements LocalCounter {
  readonly partition: string
  /** The policy of the latest request. The limit may change. */
  policy: Policy
  usedMs: number
  /**
   * The time when the counter will be settled. Undefined if no request has used the counter since the latest
   * settlement began.
   */
  dueMs: number | undefined
  isSettling = false
  /** True if the counter became due while it was being settled. */
  isDueAgain = false
  ended: LocalCounter["ended"]
  /** The server's time minus the time of this process, as an estimate. */
  aheadMs: number
  readonly #instances: number
  #state: CounterState | undefined
  /** The server's time of the state. */
  #stateMs = 0
  /** The time at which the known count was requested. Before the first settlement, the time of the first request. */
  #askedMs: number
  #largestCost = 1
  /** Units that the other instances are assumed to have taken since the latest settlement. */
  #assumed = 0

  constructor({ policy, partition }: CounterKey, instances: number, aheadMs: number, nowMs: number) {
    this.policy = policy
    this.partition = partition
    this.usedMs = nowMs
    this.aheadMs = aheadMs
    this.#instances = instances
    this.#askedMs = nowMs
  }

  /** True if the shared count lacks units of this process, or will be read soon. */
  get isActive(): boolean {
    return this.dueMs !== undefined || this.isSettling
  }

  /**
   * Returns the server's time. Once the server has responded, it is the latest time that the server's clock has
   * certainly reached.
   */
  serverMs(nowMs: number): number {
    return Math.max(this.#stateMs, Math.floor(nowMs + this.aheadMs))
  }

  ageMs(nowMs: number): number {
    return ageMsOf(this.#askedMs, nowMs)
  }

  /** Records a request, granted or not. */
  ask({ policy, cost }: Check, nowMs: number): void {
    this.policy = policy
    this.usedMs = nowMs
    if (cost > this.#largestCost) this.#largestCost = cost
  }

  /**
   * Returns the state by which requests are decided. With several instances, this state assumes that the other
   * processes use their shares of the remaining units. With 100 remaining units and 4 instances, 75 units count as
   * used. Each share is at least the largest cost of a request.
   */
  at(serverMs: number): CounterState {
    const { policy } = this
    const algorithm = algorithmOf(policy)
    const state = this.#bring(serverMs)
    if (this.#instances === 1) return state
    const room = capacityOf(policy) - algorithm.used(state, policy, serverMs)
    const share = Math.max(this.#largestCost, Math.floor(room / this.#instances))
    return room > share ? algorithm.withUnits(state, policy, room - share, serverMs) : state
  }

  /**
   * Counts units that were taken. Each of the other instances is assumed to take the same number of units until the
   * next settlement.
   */
  take(units: number, serverMs: number): void {
    const state = this.#bring(serverMs)
    const counted = -chargeable(state, -units * this.#instances)
    this.#assumed += counted - units
    this.#state = algorithmOf(this.policy).withUnits(state, this.policy, counted, serverMs)
  }

  /**
   * Applies refunds and charges of this counter. A refund also removes the units that other instances were assumed to
   * take.
   */
  refund(refunds: readonly Refund[], nowMs: number): void {
    let state = this.#bring(this.serverMs(nowMs))
    for (const { policy, units, after } of refunds) {
      const assumed = Math.min(this.#assumed, Math.max(0, units) * (this.#instances - 1))
      this.#assumed -= assumed
      const counted = chargeable(state, units + assumed)
      state = algorithmOf(policy).withoutUnits(state, policy, counted, after, this.#stateMs)
    }
    this.#state = state
  }

  /** Adds units that the shared store has granted, until the next settlement reads them. */
  grant({ policy, units, after }: Refund, nowMs: number): void {
    const state = this.#bring(this.serverMs(nowMs))
    this.#state = algorithmOf(policy).withoutUnits(state, policy, units, after, this.#stateMs)
  }

  /** Returns a charge of a bucket without the units that have since been refilled. Returns other charges unchanged. */
  stillInUse(charge: Refund, nowMs: number): Refund {
    const { policy } = this
    const algorithm = algorithmOf(policy)
    if (algorithm.filled === undefined || charge.units >= 0) return charge
    const serverMs = this.serverMs(nowMs)
    const used = algorithm.used(this.#bring(serverMs), policy, serverMs)
    return { ...charge, units: -Math.min(-charge.units, used) }
  }

  /** Stores the shared count. The caller then adds the own units that this count does not include. */
  settled({ state, serverMs, sentMs, arrivedMs }: Seen): void {
    // The reply was made between `sentMs` and `arrivedMs`, at most a millisecond after `serverMs`. Keep the previous
    // estimate if it is within this range. Otherwise, a slow reply would set the time back, and units would move to
    // another window.
    const leastMs = serverMs - arrivedMs
    this.aheadMs = this.aheadMs < serverMs + 1 - sentMs ? Math.max(leastMs, this.aheadMs) : leastMs
    this.#askedMs = sentMs
    this.#assumed = 0
    this.#stateMs = serverMs
    this.#state = state
  }

  /**
   * True if the counter can be removed without a loss, because all its units are settled and no longer have an
   * effect.
   */
  isIdle(nowMs: number): boolean {
    if (this.isActive || this.#state === undefined) return !this.isActive
    return algorithmOf(this.policy).emptyAtMs(this.#state, this.policy) <= this.serverMs(nowMs)
  }

  #bring(serverMs: number): CounterState {
    this.#stateMs = serverMs
    this.#state = algorithmOf(this.policy).at(this.#state, this.policy, serverMs)
    return this.#state
  }
}
