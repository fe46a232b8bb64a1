import { type Clock, type Store, StoreUnavailableError } from "@sluice/core"
import { beforeDeadline, type MaybePromise } from "@sluice/core/kit"
import {
  BACKGROUND_REFUND_MS,
  BoundedTable,
  type Check,
  type CounterKey,
  type Refund,
  type StoreCondition,
  type StoreResult,
  storeErrorOf,
  type TableEntry,
} from "@sluice/core/stores"

import { attempt, CallsInFlight } from "./calls.ts"
import { Charger, type ChargerNames } from "./charger.ts"
import {
  isWhole,
  localResult,
  restOf,
  type SetAside,
  type SplitRequest,
  wholeResult,
} from "./split-request.ts"
import { StoreWrapper } from "./store-wrapper.ts"
import { Sweep } from "./sweep.ts"

/**
 * The local part of one counter of the shared store. Units are charged to the shared store before or after this
 * process grants them.
 */
export interface LocalCounter extends TableEntry {
  /**
   * Present when the counter is no longer in the table. Units that return later are still settled with the shared
   * store, unless a reset has deleted them.
   */
  ended: "settled" | "reset" | undefined
}

/** The parts of a store with local counters. */
interface LocalParts extends ChargerNames {
  /** The name of the store in messages, such as "leased store". */
  readonly name: string
  readonly clock: Clock
  readonly mostCounters: number
  /** The minimum time between two sweeps, in milliseconds. */
  readonly pauseMs: number
}

/**
 * A store in front that decides by local counters. The shared store decides a check that has no local counter, or
 * that its local counter cannot decide. All checks of a request are granted, or nothing is taken. To ensure this,
 * local units are set aside, and put back if the shared store does not grant the rest.
 */
export abstract class LocalStore<
  Counter extends LocalCounter,
  Aside extends SetAside<Counter> = SetAside<Counter>,
> extends StoreWrapper {
  protected readonly table: BoundedTable<Counter>
  protected readonly inFlight = new CallsInFlight()
  protected readonly charger: Charger
  protected readonly sweep: Sweep
  readonly #clock: Clock

  constructor(wrapped: Store, parts: LocalParts) {
    super(parts.name, wrapped)
    const { clock, mostCounters, pauseMs } = parts
    this.#clock = clock
    this.table = new BoundedTable(mostCounters)
    this.charger = new Charger(this.wrapped, clock, parts, (event) => this.listeners.emit(event))
    this.sweep = new Sweep(clock, pauseMs, (nowMs) => this.sweepAt(nowMs))
  }

  /** The condition that is reported for requests that local counters have decided. */
  protected abstract readonly condition: StoreCondition

  /** Returns the local counter for a check. Undefined if the shared store decides the check. */
  protected abstract counterOf(check: Check, nowMs: number): Counter | undefined

  /**
   * Sets units aside for the checks that local counters decide. Returns the result if local counters refuse the
   * request.
   */
  protected abstract setAside(request: SplitRequest<Counter, Aside>): StoreResult | undefined

  /**
   * Puts back units of a request that was not granted. Not called after a reset, because the reset has deleted the
   * units.
   */
  protected abstract putBack(aside: Aside): void

  /**
   * Updates local counters from the reply to the rest of a request, or from the local result if there is no rest.
   * Returns the result.
   */
  protected abstract answered(request: SplitRequest<Counter, Aside>, answer: StoreResult): StoreResult

  /** Called while the shared store is being asked. */
  protected asked(_request: SplitRequest<Counter, Aside>): void {}

  /** Applies a refund locally. Returns false if the shared store must apply it. */
  protected abstract takeBack(refund: Refund, counter: Counter | undefined): boolean

  /** Updates a local counter after the shared store has granted units to it, so that waiting requests are admitted. */
  protected abstract learnGrant(grant: Refund, counter: Counter | undefined): void

  /** Discards the pending units of a counter that is reset. Returns the units that were not sent. */
  protected abstract drop(key: CounterKey, counter: Counter | undefined): readonly Refund[]

  /** Handles the units that were dropped for a reset that failed. */
  protected abstract restore(dropped: readonly Refund[], error: unknown): void

  /** Settles the counters that are due with the shared store. */
  protected abstract sweepAt(nowMs: number): void

  /** Settles all counters, after the calls in flight have ended. */
  protected abstract settleAll(): Promise<void>

  take(checks: readonly Check[], withinMs?: number): MaybePromise<StoreResult> {
    this.checkOpen()
    const nowMs = this.nowMs()
    const counters: (Counter | undefined)[] = []
    let isLocal = false
    for (let i = 0; i < checks.length; i++) {
      const counter = isBeforePenalty(checks, i) ? undefined : this.counterOf(checks[i] as Check, nowMs)
      counters.push(counter)
      isLocal ||= counter !== undefined
    }
    if (!isLocal) return this.wrapped.take(checks, withinMs)
    const request: SplitRequest<Counter, Aside> = { checks, counters, aside: [], nowMs, withinMs }
    return this.setAside(request) ?? this.#takeRest(request)
  }

  #takeRest(request: SplitRequest<Counter, Aside>): MaybePromise<StoreResult> {
    const { checks, withinMs } = request
    if (isWhole(request)) return this.answered(request, localResult(request, true, this.condition))
    const rest = restOf(request)
    const whole = attempt(
      () => this.wrapped.take(rest, withinMs),
      (answer) => this.#answered(request, answer),
      (error) => {
        this.#putBack(request)
        throw error
      },
    )
    if (whole instanceof Promise) {
      this.asked(request)
      if (rest.length < checks.length) this.inFlight.add(whole)
    }
    return whole
  }

  #answered(request: SplitRequest<Counter, Aside>, answer: StoreResult): StoreResult {
    if (!answer.granted) this.#putBack(request)
    return wholeResult(request, this.answered(request, answer))
  }

  #putBack({ aside }: SplitRequest<Counter, Aside>): void {
    for (const one of aside) {
      if (one !== undefined && one.counted.taken > 0 && one.counter.ended !== "reset") this.putBack(one)
    }
  }

  refund(refunds: readonly Refund[], withinMs?: number): MaybePromise<void> {
    this.checkOpen()
    // Granted units belong to the shared counter, not to the units that this process holds.
    const grants = refunds.filter(isGrant)
    const rest = refunds.filter((refund) => isGrant(refund) || !this.takeBack(refund, this.find(refund)))
    const refunded = this.#refundRest(refunds, rest, withinMs)
    if (grants.length === 0) return refunded
    const learn = () => {
      for (const grant of grants) this.learnGrant(grant, this.find(grant))
    }
    return refunded instanceof Promise ? refunded.then(learn) : learn()
  }

  #refundRest(
    refunds: readonly Refund[],
    rest: readonly Refund[],
    withinMs: number | undefined,
  ): MaybePromise<void> {
    // Pass an empty refund to the wrapped store, so that it fails as it would without this store.
    if (rest.length === refunds.length) return this.wrapped.refund(rest, withinMs)
    return rest.length === 0 ? undefined : this.#refundPart(rest, withinMs)
  }

  /** Refunds a part. If this call fails, the outcome is unknown, because the local part has already been applied. */
  async #refundPart(rest: readonly Refund[], withinMs: number | undefined): Promise<void> {
    try {
      await this.wrapped.refund(rest, withinMs)
    } catch (error) {
      const { message, kind } = storeErrorOf(error)
      throw new StoreUnavailableError(message, { kind, outcome: "unknown", cause: error })
    }
  }

  /**
   * Resets counters after the calls in flight have ended. Otherwise, these calls would change the counters after the
   * reset.
   */
  async reset(keys: readonly CounterKey[], withinMs?: number): Promise<void> {
    this.checkOpen()
    const dropped = this.#drop(keys)
    const startedMs = performance.now()
    try {
      const waitMs = (withinMs ?? BACKGROUND_REFUND_MS) / 2
      if (!this.inFlight.isEmpty) await beforeDeadline(this.inFlight.settled(), waitMs, () => undefined)
      await this.wrapped.reset(keys, withinMs && withinMs - (performance.now() - startedMs))
    } catch (error) {
      this.restore([...dropped, ...this.#drop(keys)], error)
      throw error
    }
    // Drop the counters again, because units may have been taken or booked while the store deleted the counters.
    this.#drop(keys)
  }

  #drop(keys: readonly CounterKey[]): readonly Refund[] {
    return keys.flatMap((key) => {
      const counter = this.find(key)
      if (counter !== undefined) this.endCounter(counter, "reset")
      return this.drop(key, counter)
    })
  }

  protected async end(): Promise<void> {
    this.sweep.stop()
    await beforeDeadline(this.settleAll(), BACKGROUND_REFUND_MS, () => undefined)
    await this.wrapped.close()
  }

  /** The monotonic time of this process. */
  protected nowMs(): number {
    return this.#clock.now()
  }

  protected find({ policy, partition }: CounterKey): Counter | undefined {
    return this.table.find(policy.counter, partition)
  }

  protected endCounter(counter: Counter, how: "settled" | "reset"): void {
    this.table.delete(counter)
    counter.ended = how
  }
}

/** A penalty counts the refusals of the previous check, so the shared store must see both. */
export function isBeforePenalty(checks: readonly Check[], i: number): boolean {
  return checks[i + 1]?.policy.algorithm === "penalty"
}

function isGrant({ policy }: Refund): boolean {
  return policy.algorithm === "grant"
}
