import type { CounterState } from "../algorithms/algorithm.ts"
import type { StoreUnavailableError } from "../ground/errors.ts"
import type { MaybePromise } from "../ground/maybe-promise.ts"
import type { Policy } from "../ground/policy.ts"
import type { WarningCode } from "../ground/warnings.ts"
import type { StoreStatus } from "./store-status.ts"

/** The identity of a counter: a policy's `counter` and a partition. Different pairs are different counters. */
export interface CounterKey {
  /** The compiled rule, which defines what is counted and how. */
  readonly policy: Policy
  /**
   * The group of requests that are counted together. A string of bounded length, unambiguous within the policy. ""
   * stands for the whole service.
   */
  readonly partition: string
}

/** A request's check against one limit. */
export interface Check extends CounterKey {
  /** Quota units, a non-negative integer. A cost of 0 takes no units and is always admitted. */
  readonly cost: number
  /** True if the check is counted and reported, but never refuses. A check that does not fit takes no units. */
  readonly shadow: boolean
}

/** The state of a counter. */
export interface CounterReading {
  /**
   * The counter's state. If units were taken from a strict window, `parts` may be an outline. An outline has the same
   * number of parts, with a unit in the oldest part and 0 in all other parts. Everything that is computed after a
   * grant is the same with an outline, so a store need not read the parts to grant. `startMs`, `current` and
   * `previous` (the sum of the parts) are always exact.
   */
  readonly state: CounterState
  /**
   * Age of the count in milliseconds, rounded up. The age is the time since the shared counter was read, or since a
   * counter that is written back was first used. Absent if the shared counter was read for this request. If present,
   * the count comes from a lease, from this process, or from a remembered refusal.
   */
  readonly ageMs?: number
}

/** The state of a counter after its check, and the units that the check took. */
export interface Counted extends CounterReading {
  /** Units that the check took, which are its cost or 0. */
  readonly taken: number
  /**
   * Milliseconds until the refused check fits if no other request is admitted, or Infinity if it never fits. If
   * absent, the limiter computes the wait from `state`.
   */
  readonly retryAfterMs?: number
  /**
   * The state right after the units were taken, if `state` is the state at a later time. This happens when a request
   * takes units from several servers, one after another. Later refunds apply to the window or bucket of this state.
   */
  readonly after?: CounterState
}

/** How a store obtained its result. If all members are absent, the shared counters responded to this call. */
export interface StoreCondition {
  /** True if the store responded from its cache. Such a result does not show that the back end is available. */
  readonly isRemembered?: boolean
  /**
   * True if the store decided without the shared counters, because they have not responded for a while
   * (`writeBackStore`). The limiter reports such a decision as `degraded`, and does not decide again.
   */
  readonly isDegraded?: boolean
  /** The reason why the shared counters did not respond, if `isDegraded` is true. Absent if the reason is unknown. */
  readonly failure?: StoreUnavailableError | undefined
}

/** The states of counters at one time. */
export interface StoreReading extends StoreCondition {
  /** The time of the states by the store's clock, in whole epoch milliseconds. */
  readonly nowMs: number
  /** The state of each counter, in the order of the checks. */
  readonly counters: readonly CounterReading[]
}

/** The outcome of a request, namely whether it was granted and what was counted. */
export interface StoreResult extends StoreCondition {
  /** The time of the decision by the store's clock, in whole epoch milliseconds. */
  readonly nowMs: number
  /**
   * Whether every check was admitted, except shadow checks. If false, nothing was taken from any counter. Refusals
   * that count (`Store.take`) are included in the states, but not in `taken`.
   */
  readonly granted: boolean
  /**
   * The result of each check, in the order of the checks. Undefined if the counter was not read because another counter
   * had already refused. This happens only if the request was not granted.
   */
  readonly checks: readonly (Counted | undefined)[]
  /**
   * Whole milliseconds for which a hold-off makes the store refuse the same request again without calling the shared
   * counters (`leasedStore`). The limiter reports the longer of this time and the wait that it computes from the
   * counts. Absent: 0.
   */
  readonly againAfterMs?: number
}

/** A refund of units that a check has taken. */
export interface Refund extends CounterKey {
  /**
   * Units to refund. A negative number is a charge in addition to the units that were taken, even if the charge does
   * not fit. A charge stops at 2^53 - 1 units in use. If the policy's algorithm is "penalty", a negative number
   * blocks the counter for that many milliseconds. If it is "in-flight", a negative number renews that many permits: it
   * moves them to the current window, and adds those that no longer count. If it is "grant", the units are granted for the
   * current period, and a negative number takes granted units back.
   */
  readonly units: number
  /**
   * The state right after the units were taken: `Counted.after`, or `Counted.state` if `after` is absent. For permits
   * that were renewed, `startMs` is the start of the window to which the latest renewal moved them.
   */
  readonly after: CounterState
}

/**
 * The event for a counter that a full store evicted while it still had an effect. The client of the counter can use
 * its units again too early, because the store is too small.
 */
export interface EvictionEvent {
  /** The type of the event. */
  readonly type: "evicted"
  /**
   * Number of counters that were evicted since the previous event. More than 1 only if the store evicts more counters
   * per second than it emits events.
   */
  readonly counters: number
  /**
   * Milliseconds for which the counter would still have counted. If the event stands for several counters, this is
   * the time of the last counter.
   */
  readonly emptyAfterMs: number
  /**
   * Milliseconds for which the client would still have been refused, or 0 if the client was not being refused. For
   * permits, at most 1,000, because the end of other requests is unknown.
   */
  readonly releaseAfterMs: number
}

/**
 * The event for units that a store could not refund. The units belong to requests that have already ended, or to a
 * lease. The units stay taken until their window passes.
 */
export interface RefundLostEvent {
  /** The type of the event. */
  readonly type: "refund-lost"
  /** The reason why the units could not be refunded. */
  readonly error: StoreUnavailableError
}

/**
 * The event for units that this process has admitted but other counters did not confirm. The other counters are in
 * another data center (`mirroredStore`), or behind a store that writes back. These counters may admit the same units
 * once more.
 */
export interface ChargesLostEvent {
  /** The type of the event. */
  readonly type: "charges-lost"
  /** The name of the data center. "" for the shared store of a store that writes back. */
  readonly to: string
  /** Number of units that were not confirmed. */
  readonly units: number
  /** The counters that did not confirm the units, and the reason. */
  readonly error: StoreUnavailableError
}

/**
 * The event for a problem of a store's server that needs attention. A limiter logs such an event once for each
 * subject.
 */
export interface StoreWarningEvent {
  /** The type of the event. */
  readonly type: "warning"
  /** The code of the warning, for example `SLUICE_STORE_EVICTS`, `SLUICE_STORE_CLOCK_BACK`. */
  readonly code: WarningCode
  /** The subject of the warning. Only the first warning about a subject is logged. */
  readonly subject: string
  /** The problem, and how to solve it. */
  readonly message: string
}

/** An event that a store reports to an operator. */
export type StoreEvent = EvictionEvent | RefundLostEvent | ChargesLostEvent | StoreWarningEvent

/**
 * Stores counters, decides requests by their counts, and counts the requests. From the counts, the limiter computes
 * limits and waits for clients, in the same way for every store.
 *
 * Every method may return a value or a promise. A method throws or rejects only if the back end failed, preferably
 * with {@link StoreUnavailableError}, and never because of a limit. The limiter checks the results of a store of your
 * own. The limiter also applies the deadlines, so the store need not.
 */
export interface Store {
  /**
   * True if other processes use the same counters. In that case, names must be unique beyond this process, and the
   * limiter looks up clients that other processes have blocked (`Limiter.block`). False if only this process uses the
   * counters. In that case, a worker of `node:cluster` warns that each worker grants the whole limit. Absent if
   * unknown.
   */
  readonly isShared?: boolean | undefined
  /** The status of the store. The status is read often, so the getter must be cheap. */
  readonly status?: StoreStatus | undefined
  /**
   * Takes the units of all checks of one request atomically. Either all checks are admitted and counted, or no units
   * are taken. A shadow check never causes a refusal. Other callers never see a part of the change. `withinMs` is how
   * long the caller waits from now.
   *
   * If the request is refused, the same call counts the refusal of each check that would have been refused alone. The
   * check's own counter counts the refusal if its policy has `countRejected`. A check of the algorithm "penalty"
   * counts the refusal if it directly follows the refused check in the list. Both use `Algorithm.withRejected`.
   * Shadow checks, and costs that can never fit, are not counted. If the counters are on several servers that are
   * called one after another, refusals of counters after the first refusal are not counted.
   */
  take(checks: readonly Check[], withinMs?: number): MaybePromise<StoreResult>
  /**
   * Returns the current states of the counters, as a `take` of these checks would find them. Takes nothing. Most
   * stores read only the counter of a check. A store that holds units for its own process, such as `leasedStore`,
   * also reads the other members.
   */
  read(checks: readonly Check[], withinMs?: number): MaybePromise<StoreReading>
  /**
   * Refunds units to the window or bucket they were taken from, never below zero. Units of an expired window are
   * dropped. `withinMs` is how long the caller waits from now. For a background refund, this timeout is longer than
   * for a decision, and the store tries even while its circuit breaker is open.
   *
   * A failure is a {@link StoreUnavailableError}. Its `outcome` is "not-applied" if certainly no units were refunded.
   * Any other failure counts as "unknown", and the limiter does not retry the refund.
   */
  refund(refunds: readonly Refund[], withinMs?: number): MaybePromise<void>
  /** Deletes the counters. `withinMs` is how long the caller waits from now. */
  reset(keys: readonly CounterKey[], withinMs?: number): MaybePromise<void>
  /**
   * Calls the listener for each event that concerns an operator. Returns the function that removes the listener.
   */
  subscribe?(listener: (event: StoreEvent) => void): () => void
  /**
   * Frees the resources that the store opened. After closing, all other methods throw or reject with {@link
   * ClosedError}.
   */
  close(): MaybePromise<void>
}

/**
 * The timeout of a background refund. The timeout is long enough that a slow moment or a failover does not lose
 * units, and short enough that refunds do not pile up in an outage.
 */
export const BACKGROUND_REFUND_MS = 10_000
