import type { CounterState } from "../../algorithms/algorithm.ts"
import { algorithmOf, compilePolicy, releases } from "../../algorithms/kinds.ts"
import type { Decision } from "../../decision/decision.ts"
import {
  markOf,
  moveOut,
  newReservationId,
  type Reservation,
  type ReservedUnits,
  readReservation,
  writeReservation,
} from "../../decision/reservation.ts"
import { correctionsOf, type TakenCheck, type UsedUnits } from "../../decision/settlement.ts"
import { soundTime } from "../../ground/clock.ts"
import { requireNone } from "../../ground/option-checks.ts"
import { show } from "../../ground/show.ts"
import type { LimiterState } from "../checking/limiter-state.ts"
import type { ParsedOptions } from "../options/parse-options.ts"
import { policyWithout } from "../rule-set/limit.ts"
import { counterOf } from "../rule-set/rule-counters.ts"
import type { RuleSet } from "../rule-set/rule-set.ts"
import { requireDecision } from "./call-options.ts"

/** The problem of a reservation that was settled before. */
export const SETTLED_BEFORE = {
  path: "text",
  message: "was settled before",
  accepted: "a reservation that is not settled",
}

/** The problem of a text that is no longer accepted. */
export const TOO_LATE = {
  path: "text",
  message: "is no longer accepted, because it is too old",
  accepted: "a text that renewReservation() returned in the last 10 minutes",
}

/** What a settlement of a reservation changes. */
export interface ReservationSettlement {
  /** The used units. Units that are not named stay as they were taken. */
  readonly used: UsedUnits
  /** True if everything is refunded, because the request was not sent after all. */
  readonly refund: boolean
}

/** Why a reservation was not settled or renewed: it was settled before, or its text is no longer accepted. */
export type ReservationEnd = "repeated" | "late"

/** A counter of a reservation under the current rules, and the state right after its units were taken. */
interface ReservedCheck {
  readonly check: TakenCheck
  readonly after: CounterState
}

/** Reserves, settles and renews what decisions of a service took, also decisions of other processes. */
export class Reservations<Request> {
  readonly #options: ParsedOptions
  readonly #state: LimiterState<Request>
  readonly #rules: { readonly current: RuleSet }
  /** The rules by the names of their counters, for the rule set of the latest call. */
  #known:
    | { readonly ruleSet: RuleSet; readonly byCounter: ReadonlyMap<string, RuleSet["rules"][number]> }
    | undefined

  constructor(options: ParsedOptions, state: LimiterState<Request>, rules: { readonly current: RuleSet }) {
    this.#options = options
    this.#state = state
    this.#rules = rules
  }

  /** Moves what the decision took into a text, which is accepted for `lifetimeMs`. */
  reserve(decision: Decision, lifetimeMs: number): Reservation {
    requireDecision(decision, this.#state.decider)
    const moved = decision.checks.length === 0 && decision.allowed ? [] : moveOut(decision)
    const message = decision.allowed
      ? "was settled, refunded or reserved before, so nothing is left to reserve"
      : "was refused, so nothing was taken"
    const problem = { path: "decision", message, accepted: "an admitted decision" }
    requireNone(moved === undefined ? [problem] : [])
    const { service, clock } = this.#options
    const untilMs = Math.ceil(soundTime(clock)) + lifetimeMs
    const reserved = { service, id: newReservationId(), untilMs, lifetimeMs, counters: moved ?? [] }
    return this.#written(reserved, this.#state.decider.ledger.storeMs)
  }

  /** Settles a reservation once. Returns undefined, or the reason why it was not settled. */
  async settle(text: unknown, settlement: ReservationSettlement): Promise<ReservationEnd | undefined> {
    const reserved = this.#read(text)
    if (this.#isLate(reserved)) return "late"
    const refunds = this.#countersOf(reserved).flatMap(({ check, after }) =>
      correctionsOf(check, after, settlement.used, settlement.refund),
    )
    const { corrections } = this.#state.decider
    if (!(await corrections.settleOnce(markOf(reserved), refunds))) return "repeated"
    for (const refund of refunds) if (releases(refund.policy)) this.#state.decider.ledger.settled(refund)
    this.#state.wake(refunds.filter(({ units }) => units > 0))
    return undefined
  }

  /** Renews the permits of a reservation, and returns its new text or the reason why it was not renewed. */
  async renew(text: unknown): Promise<Reservation | ReservationEnd> {
    const reserved = this.#read(text)
    if (this.#isLate(reserved)) return "late"
    const permits = this.#countersOf(reserved).filter(({ check }) => releases(check.policy))
    const { corrections } = this.#state.decider
    const nowMs = await corrections.renewReserved(
      markOf(reserved),
      permits.map(({ check: { policy, partition, cost }, after }) => ({
        policy,
        partition,
        units: -cost,
        after,
      })),
    )
    if (nowMs === undefined) return "repeated"
    const { ledger } = this.#state.decider
    for (const { check } of permits) {
      ledger.settled(check)
      ledger.reserved(check, check.cost)
    }
    const moved = new Map(
      permits.map(({ check }) => [check.policy.counter, nowMs - (nowMs % check.policy.windowMs)]),
    )
    const counters = reserved.counters.map((each) => ({
      ...each,
      startMs: moved.get(each.counter) ?? each.startMs,
    }))
    const untilMs = Math.ceil(soundTime(this.#options.clock)) + reserved.lifetimeMs
    return this.#written({ ...reserved, untilMs, counters }, nowMs)
  }

  /** `storeMs` is a lower bound of the store's time. */
  #written(reserved: ReservedUnits, storeMs: number): Reservation {
    const text = writeReservation(reserved)
    const ends = this.#countersOf(reserved).flatMap(({ check: { policy }, after }) => {
      if (!releases(policy)) return []
      // Permits that were taken without the store are counted there from their first renewal on.
      if (after.startMs === 0) return [policy.windowMs]
      return [algorithmOf(policy).emptyAtMs(after, policy) - storeMs]
    })
    return ends.length === 0 ? { text } : { text, renewWithinMs: Math.max(0, Math.floor(Math.min(...ends))) }
  }

  #read(text: unknown): ReservedUnits {
    const reserved = readReservation(text)
    const { service } = this.#options
    const message =
      reserved === undefined
        ? "is not a reservation"
        : `is a reservation of the service ${show(reserved.service)}`
    const accepted = "the text of a reservation of this service"
    requireNone(reserved?.service === service ? [] : [{ path: "text", message, accepted }])
    return reserved as ReservedUnits
  }

  #isLate({ untilMs }: ReservedUnits): boolean {
    return soundTime(this.#options.clock) > untilMs
  }

  /** Returns the counters of the current rules. Counters of rules that are gone or count differently are left out. */
  #countersOf({ counters }: ReservedUnits): readonly ReservedCheck[] {
    const byCounter = this.#rulesByCounter()
    return counters.flatMap(({ counter, partition, limit, burst, unitCost, taken, endMs, ...after }) => {
      const rule = byCounter.get(counter)
      if (rule === undefined) return []
      const policy = compilePolicy({
        ...policyWithout(rule, counter),
        limit,
        ...(burst > 0 && { burst }),
        ...(endMs > after.startMs && { periods: [after.startMs, endMs] }),
      })
      return [{ check: { policy, partition, cost: taken, unit: rule.counts, unitCost }, after }]
    })
  }

  #rulesByCounter(): ReadonlyMap<string, RuleSet["rules"][number]> {
    const ruleSet = this.#rules.current
    if (this.#known?.ruleSet !== ruleSet) {
      const { service } = this.#options
      const byCounter = new Map(ruleSet.rules.map((rule) => [counterOf(service, rule), rule]))
      this.#known = { ruleSet, byCounter }
    }
    return this.#known.byCounter
  }
}
