import { algorithmOf, type Check, countsRefusals, type StoreResult } from "@sluice/core/stores"
import type { Seen } from "../in-front/seen.ts"
import { wholeResult } from "../in-front/set-aside.ts"
import type { Lease, LeasedUnits } from "./lease.ts"

/**
 * A request of which leases cover some checks. Their units are set aside, and the store decides the rest. Either all
 * checks are granted, or the units that were set aside return.
 */
export class SharedRequest {
  readonly #checks: readonly Check[]
  readonly #leases: readonly (Lease | undefined)[]
  readonly #nowMs: number
  readonly #aside: (LeasedUnits | undefined)[] = []

  /** `leases[i]` is the lease of the counter of `checks[i]`, undefined if that counter is not leased. */
  constructor(checks: readonly Check[], leases: readonly (Lease | undefined)[], nowMs: number) {
    this.#checks = checks
    this.#leases = leases
    this.#nowMs = nowMs
  }

  /** The leases of the request. */
  get leases(): readonly Lease[] {
    return this.#leases.filter((lease) => lease !== undefined)
  }

  /** The units that were set aside for the request. */
  get aside(): readonly LeasedUnits[] {
    return this.#aside.filter((one) => one !== undefined)
  }

  /** The checks that the store decides. */
  get rest(): readonly Check[] {
    return this.#checks.filter((_, i) => this.#aside[i] === undefined)
  }

  /** Returns the refusal of a request that is held off; undefined if it is not. */
  heldOff(): StoreResult | undefined {
    // The store has to see every refusal that counts.
    if (this.#checks.some(countsRefusals)) return undefined
    let againAfterMs = 0
    let longestMs = -1
    let nowMs = 0
    const repeated = this.#checks.map((check, i) => {
      const lease = this.#leases[i]
      if (lease === undefined || lease.covers(check.cost)) return undefined
      const restMs = lease.holdOff.restMs(check, this.#nowMs)
      if (restMs === 0) return undefined
      againAfterMs = Math.max(againAfterMs, restMs)
      const refusal = lease.holdOff.repeated(this.#nowMs)
      const { policy, cost } = check
      const waitMs = algorithmOf(policy).retryAfterMs(refusal.counted.state, policy, cost, refusal.serverMs)
      if (waitMs > longestMs) {
        longestMs = waitMs
        nowMs = refusal.serverMs
      }
      return refusal
    })
    if (againAfterMs === 0) return undefined
    // A state is reported as of its own time, because a later state might admit. The answer has one time, so it has the
    // refusals of the time with the longest wait.
    const checks = repeated.map((one) => (one?.serverMs === nowMs ? one.counted : undefined))
    return { nowMs, granted: false, checks, isRemembered: true, againAfterMs }
  }

  /** Sets aside the units of each check that its lease covers. */
  setAside(): void {
    for (let i = 0; i < this.#checks.length; i++) {
      const { cost } = this.#checks[i] as Check
      const lease = this.#leases[i]
      this.#aside[i] = lease?.covers(cost) === true ? lease.grant(cost, this.#nowMs) : undefined
    }
  }

  /** Returns the answer of a request that leases cover in full. */
  granted(): StoreResult {
    return this.#whole({ nowMs: 0, granted: true, checks: [], isRemembered: true })
  }

  /** Learns what the answer to the rest says about leased counters, and returns the answer to the whole request. */
  answered(answer: StoreResult, arrivedMs: number): StoreResult {
    const againAfterMs = Math.max(answer.againAfterMs ?? 0, this.#learn(answer, arrivedMs))
    const whole = this.#whole(answer)
    return againAfterMs === 0 ? whole : { ...whole, againAfterMs }
  }

  /** Returns how long the process holds off after a refusal, 0 if it does not. */
  #learn({ granted, nowMs: serverMs, checks, isRemembered }: StoreResult, arrivedMs: number): number {
    let againAfterMs = 0
    if (isRemembered === true) return againAfterMs
    const isHeldOff = !granted && !this.#checks.some(countsRefusals)
    let next = 0
    for (let i = 0; i < this.#checks.length; i++) {
      if (this.#aside[i] !== undefined) continue
      const [check, lease, counted] = [this.#checks[i] as Check, this.#leases[i], checks[next++]]
      if (lease === undefined || counted === undefined) continue
      const { state, taken } = counted
      const seen: Seen = { state, serverMs, sentMs: this.#nowMs, arrivedMs }
      lease.learn(seen, taken)
      const { policy, cost, shadow } = check
      if (granted || shadow || algorithmOf(policy).admits(state, policy, cost, serverMs)) continue
      lease.holdOff.refuse(check, seen)
      if (isHeldOff) againAfterMs = Math.max(againAfterMs, lease.holdOff.restMs(check, arrivedMs))
    }
    return againAfterMs
  }

  #whole(answer: StoreResult): StoreResult {
    return wholeResult(this.#checks, this.#aside, answer)
  }
}
