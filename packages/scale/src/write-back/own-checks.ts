import {
  algorithmOf,
  type Check,
  type CounterReading,
  type PendingCheck,
  type Refund,
  type StoreCondition,
  type StoreReading,
  type StoreResult,
  takeTogether,
} from "@sluice/core/stores"
import type { Charges } from "../in-front/charges.ts"
import { type SetAside, wholeResult } from "../in-front/set-aside.ts"
import type { WrittenCounter } from "./written-counter.ts"

interface OwnCheck extends PendingCheck {
  /** Its place in the request. */
  readonly i: number
  readonly counter: WrittenCounter
}

/** The checks of a request that this process decides. Either all of them are admitted, or nothing is taken. */
export class OwnChecks {
  readonly #checks: readonly Check[]
  readonly #counters: readonly (WrittenCounter | undefined)[]
  readonly #nowMs: number
  readonly #serverMs: number
  /** Number of checks that this process decides. */
  readonly #own: number
  #aside: readonly (SetAside | undefined)[] = []

  /** `counters[i]` is the counter of `checks[i]`, undefined if the shared store decides that check. */
  constructor(checks: readonly Check[], counters: readonly (WrittenCounter | undefined)[], nowMs: number) {
    this.#checks = checks
    this.#counters = counters
    this.#nowMs = nowMs
    let serverMs = 0
    let own = 0
    for (let i = 0; i < counters.length; i++) {
      const counter = counters[i]
      if (counter === undefined) continue
      own++
      serverMs = Math.max(serverMs, counter.serverMs(nowMs))
    }
    this.#serverMs = serverMs
    this.#own = own
  }

  /** True if the shared store decides all checks. */
  get isEmpty(): boolean {
    return this.#own === 0
  }

  /** True if this process decides all checks. */
  get isWhole(): boolean {
    return this.#own > 0 && this.#own === this.#checks.length
  }

  /** The checks that the shared store decides. */
  get rest(): readonly Check[] {
    return this.#checks.filter((_, i) => this.#counters[i] === undefined)
  }

  /** Takes the units of all own checks, or nothing. Adds them to the charges. Returns whether they were admitted. */
  take(charges: Charges): boolean {
    const pending = this.#pending()
    if (!takeTogether(pending, this.#serverMs)) return false
    this.#setAside(pending)
    for (const { counter, taken, state } of pending) {
      if (taken === 0) continue
      counter.take(taken, this.#serverMs)
      charges.add(counter, taken, state)
    }
    return true
  }

  /**
   * Returns the states of all counters. `rest` has those of the shared store, undefined if there are none. The reading
   * has the latest of all times.
   */
  read(rest: StoreReading | undefined, condition: StoreCondition): StoreReading {
    const nowMs = Math.max(this.#serverMs, rest?.nowMs ?? 0)
    let next = 0
    const counters = this.#checks.map(({ policy }, i): CounterReading => {
      const own = this.#counters[i]
      if (own !== undefined) return { state: own.at(nowMs), ageMs: own.ageMs(this.#nowMs) }
      const counter = rest?.counters[next++] as CounterReading
      return { ...counter, state: algorithmOf(policy).at(counter.state, policy, nowMs) }
    })
    const { isDegraded, failure } = condition
    if (rest === undefined) return { nowMs, counters, ...condition }
    return { ...rest, nowMs, counters, ...(isDegraded === true && { isDegraded, failure }) }
  }

  /** The refunds of the units that were taken, with their counters. */
  get taken(): readonly (readonly [WrittenCounter, Refund])[] {
    return this.#counters.flatMap((counter, i) => {
      const { taken: units = 0, state: after } = this.#aside[i]?.counted ?? {}
      if (counter === undefined || after === undefined || units === 0) return []
      const { policy, partition } = counter
      return [[counter, { policy, partition, units, after }] as const]
    })
  }

  /** Returns the answer to a request whose checks are all own ones. */
  answer(granted: boolean, condition: StoreCondition): StoreResult {
    const checks = this.#aside.map((own) => own?.counted)
    return { nowMs: this.#serverMs, granted, checks, ...condition }
  }

  /** Returns the answer to a request that the own checks refuse. Counters of the shared store are not read. */
  refused(condition: StoreCondition): StoreResult {
    this.#setAside(this.#pending())
    return this.answer(false, condition)
  }

  /** Returns the answer to the whole request. `answer` is the answer to the rest. */
  whole(answer: StoreResult, { isDegraded, failure }: StoreCondition): StoreResult {
    const whole = wholeResult(this.#checks, this.#aside, answer)
    return isDegraded === true ? { ...whole, isDegraded, failure } : whole
  }

  #pending(): OwnCheck[] {
    const pending: OwnCheck[] = []
    for (let i = 0; i < this.#checks.length; i++) {
      const check = this.#checks[i] as Check
      const counter = this.#counters[i]
      if (counter === undefined) continue
      const state = counter.at(this.#serverMs)
      pending.push({ i, check, counter, algorithm: algorithmOf(check.policy), state, taken: 0 })
    }
    return pending
  }

  #setAside(pending: readonly OwnCheck[]): void {
    const aside: (SetAside | undefined)[] = this.#checks.map(() => undefined)
    for (const { i, counter, state, taken } of pending) {
      aside[i] = { counted: { state, taken, ageMs: counter.ageMs(this.#nowMs) }, serverMs: this.#serverMs }
    }
    this.#aside = aside
  }
}
