import type { Store } from "@sluice/core"
import type { MaybePromise } from "@sluice/core/kit"
import {
  algorithmOf,
  type Check,
  type Counted,
  type CounterKey,
  countsByPart,
  type PendingCheck,
  type Refund,
  type StoreCondition,
  type StoreReading,
  type StoreResult,
  type StoreStatus,
  takeTogether,
} from "@sluice/core/stores"
import { CHARGE_MS } from "../in-front/charger.ts"
import { isBeforePenalty, LocalStore } from "../in-front/local-store.ts"
import {
  localResult,
  refundOf,
  restOf,
  type SetAside,
  type SplitRequest,
  wholeResult,
} from "../in-front/split-request.ts"
import type { ParsedWriteBackOptions } from "./options.ts"
import { Settler } from "./settler.ts"
import { WrittenCounter } from "./written-counter.ts"

/** A store whose local counters are written back. Units are granted first, and charged to the shared store later. */
export class WriteBacks extends LocalStore<WrittenCounter> {
  readonly #options: ParsedWriteBackOptions
  readonly #settler: Settler

  constructor(store: Store, options: ParsedWriteBackOptions) {
    const { clock, settleMs, maxKeys } = options
    const names = { name: "write-back store", withinMs: CHARGE_MS, to: "", title: "The shared store" }
    super(store, { ...names, clock, mostCounters: maxKeys, pauseMs: settleMs / 10 })
    this.#options = options
    const { wrapped, charger, inFlight, sweep } = this
    this.#settler = new Settler({ wrapped, charger, inFlight, sweep }, options)
  }

  override get status(): StoreStatus {
    return { ...super.status, writeBack: this.charger.counts }
  }

  protected get condition(): StoreCondition {
    return this.#settler.replies.condition
  }

  /**
   * Reads a local counter while it has unsettled units, or while the shared store fails. Otherwise, reads the counter
   * in the shared store.
   */
  read(checks: readonly Check[], withinMs?: number): MaybePromise<StoreReading> {
    this.checkOpen()
    const counters = checks.map((check, i) => {
      const counter = isBeforePenalty(checks, i) || !isWritable(check) ? undefined : this.find(check)
      return counter?.isActive === true || this.#settler.replies.isFailing ? counter : undefined
    })
    const request: SplitRequest<WrittenCounter> = {
      checks,
      counters,
      aside: [],
      nowMs: this.nowMs(),
      withinMs,
    }
    look(request)
    const rest = restOf(request)
    const whole = ({ counters: read, ...reading }: StoreReading): StoreReading => {
      const shared = read.map((counter): Counted => ({ ...counter, taken: 0 }))
      const { nowMs, checks: all } = wholeResult(request, { ...reading, granted: true, checks: shared })
      const counters = (all as readonly Counted[]).map(({ taken: _, ...counter }) => counter)
      return this.#reported({ ...reading, nowMs, counters })
    }
    if (checks.length > 0 && rest.length === 0) return whole({ nowMs: 0, counters: [], ...this.condition })
    const reading = this.wrapped.read(rest, withinMs)
    return reading instanceof Promise ? reading.then(whole) : whole(reading)
  }

  protected counterOf(check: Check, nowMs: number): WrittenCounter | undefined {
    const counter = isWritable(check) ? (this.find(check) ?? this.#open(check, nowMs)) : undefined
    counter?.ask(check, nowMs)
    if (counter !== undefined) this.#settler.plan(counter, nowMs)
    return counter
  }

  #open(key: CounterKey, nowMs: number): WrittenCounter | undefined {
    const { rules, instances } = this.#options
    if (!rules(key.policy.name)) return undefined
    // For each new counter, remove up to two counters that no longer have an effect, so that they do not fill the
    // table.
    for (let i = 0; i < 2; i++) {
      const other = this.table.next()
      if (other?.isIdle(nowMs) === true) this.endCounter(other, "settled")
    }
    const counter = new WrittenCounter(key, instances, this.#settler.aheadMs, nowMs)
    // An evicted counter with the same key may have left uncharged units.
    counter.refund(this.#settler.charges.of(key), nowMs)
    const evicted = this.table.add(counter)
    if (evicted !== undefined) {
      evicted.ended = "settled"
      this.#settler.evicted(evicted)
    }
    return counter
  }

  protected setAside(request: SplitRequest<WrittenCounter>): StoreResult | undefined {
    const { checks, counters, aside, nowMs } = request
    const serverMs = serverMsOf(request)
    const pending: PendingCheck[] = []
    for (let i = 0; i < checks.length; i++) {
      const check = checks[i] as Check
      const state = counters[i]?.at(serverMs)
      if (state !== undefined) pending.push({ check, algorithm: algorithmOf(check.policy), state, taken: 0 })
    }
    if (!takeTogether(pending, serverMs)) {
      look(request)
      // Report only local counters, because a refusal does not wait for the shared store.
      return localResult(request, false, this.condition)
    }
    let next = 0
    for (let i = 0; i < checks.length; i++) {
      const counter = counters[i]
      if (counter === undefined) continue
      const { state, taken } = pending[next++] as PendingCheck
      aside[i] = { counter, counted: { state, taken, ageMs: counter.ageMs(nowMs) }, serverMs }
      if (taken === 0) continue
      counter.take(taken, serverMs)
      this.#settler.charges.add(counter, taken, state)
    }
    return undefined
  }

  protected putBack(aside: SetAside<WrittenCounter>): void {
    this.#settler.apply(aside.counter, refundOf(aside))
  }

  protected answered(_: unknown, answer: StoreResult): StoreResult {
    return this.#reported(answer)
  }

  /** Returns the result, marked as degraded if the shared store has not responded for a while. */
  #reported<Answer extends StoreCondition>(answer: Answer): Answer {
    const { isDegraded, failure } = this.condition
    return isDegraded === true ? { ...answer, isDegraded, failure } : answer
  }

  protected takeBack(refund: Refund, counter: WrittenCounter | undefined): boolean {
    if (counter !== undefined) this.#settler.apply(counter, refund)
    // If the counter was evicted, its charge may be pending. A refund must not overtake the charge of its units.
    else if (this.#settler.charges.of(refund).length === 0) return false
    else this.#settler.charges.add(refund, -refund.units, refund.after)
    return true
  }

  protected learnGrant(grant: Refund, counter: WrittenCounter | undefined): void {
    counter?.grant(grant, this.nowMs())
  }

  protected drop(key: CounterKey, counter: WrittenCounter | undefined): readonly Refund[] {
    if (counter !== undefined) this.#settler.forget(counter)
    return this.#settler.charges.take(key)
  }

  protected restore(dropped: readonly Refund[]): void {
    for (const charge of dropped) {
      const counter = this.find(charge) ?? this.#open(charge, this.nowMs())
      if (counter !== undefined) this.#settler.apply(counter, charge)
    }
  }

  protected sweepAt(nowMs: number): void {
    this.#settler.settleDue(nowMs)
  }

  protected settleAll(): Promise<void> {
    return this.#settler.close()
  }
}

/** True if a check may be written back. The shared store must decide checks whose refusals count. */
function isWritable({ policy }: Check): boolean {
  return policy.countRejected !== true && countsByPart(policy)
}

/** Returns the latest time that the server's clock has certainly reached, according to the counters of the request. */
function serverMsOf({ counters, nowMs }: SplitRequest<WrittenCounter>): number {
  let serverMs = 0
  for (const counter of counters) {
    if (counter !== undefined) serverMs = Math.max(serverMs, counter.serverMs(nowMs))
  }
  return serverMs
}

/** Stores the current states of the local counters in the request, without taking units. */
function look(request: SplitRequest<WrittenCounter>): void {
  const { counters, aside, nowMs } = request
  const serverMs = serverMsOf(request)
  for (const [i, counter] of counters.entries()) {
    if (counter === undefined) continue
    const counted = { state: counter.at(serverMs), taken: 0, ageMs: counter.ageMs(nowMs) }
    aside[i] = { counter, counted, serverMs }
  }
}
