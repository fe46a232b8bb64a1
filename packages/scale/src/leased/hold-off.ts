import { type Check, type Counted, ceilingOf } from "@sluice/core/stores"
import { ageMsOf, type Seen } from "../in-front/seen.ts"
import { nextHoldOffMs } from "./sizing.ts"

/** A refusal that is repeated during the hold-off. */
interface RepeatedRefusal {
  readonly check: Check
  readonly seen: Seen
}

/**
 * The hold-off of a counter. After a refusal, the process refuses requests itself for a while, without asking the
 * store.
 */
export class HoldOff {
  readonly #leaseMs: number
  #refusal: RepeatedRefusal | undefined
  #startedMs = Number.NEGATIVE_INFINITY
  #lengthMs = 0
  /** Units that the store granted this process since the last refusal. */
  #granted = 0

  /** `leaseMs` is T in milliseconds. */
  constructor(leaseMs: number) {
    this.#leaseMs = leaseMs
  }

  /** Counts units that the store granted this process. */
  granted(units: number): void {
    this.#granted += units
  }

  /** Begins the next hold-off after the store has refused the check, unless a hold-off is running. */
  refuse(check: Check, seen: Seen): void {
    // Requests that were in flight together are refused together, which counts as one refusal. A refused request that
    // the running hold-off does not cover also belongs to this refusal.
    const isNext = seen.sentMs >= this.#startedMs + this.#lengthMs
    if (isNext) {
      this.#lengthMs = nextHoldOffMs(this.#lengthMs, this.#granted, this.#leaseMs)
      this.#startedMs = seen.arrivedMs
      this.#granted = 0
    } else if (this.#refusal !== undefined && check.cost >= this.#refusal.check.cost) return
    this.#refusal = { check, seen }
  }

  /** Returns the milliseconds for which the check is refused without asking the store; 0 if the store must be asked. */
  restMs({ policy, cost, shadow }: Check, nowMs: number): number {
    const refused = this.#refusal?.check
    if (refused === undefined || shadow || !this.isOn(nowMs)) return 0
    const isWithin = policy.limit <= refused.policy.limit && ceilingOf(policy) <= ceilingOf(refused.policy)
    const isCovered = isWithin && cost >= refused.cost
    return isCovered ? Math.ceil(this.#startedMs + this.#lengthMs - nowMs) : 0
  }

  /** Returns the result to repeat, with the time of the refusal. Call it only during the hold-off. */
  repeated(nowMs: number): { readonly serverMs: number; readonly counted: Counted } {
    const { seen } = this.#refusal as RepeatedRefusal
    return {
      serverMs: seen.serverMs,
      counted: { state: seen.state, taken: 0, ageMs: ageMsOf(seen.sentMs, nowMs) },
    }
  }

  /** True if requests may be refused now without asking the store. */
  isOn(nowMs: number): boolean {
    // If the clock was set back, the end of the hold-off is unknown.
    const sinceMs = nowMs - this.#startedMs
    return this.#refusal !== undefined && sinceMs >= 0 && sinceMs < this.#lengthMs
  }

  /** Ends the hold-off, because units were refunded and the store may admit requests again. */
  end(): void {
    this.#refusal = undefined
  }
}
