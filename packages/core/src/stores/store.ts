import type { CounterState } from "../algorithms/algorithm.ts"
import type { StoreUnavailableError } from "../ground/errors.ts"
import type { MaybePromise } from "../ground/maybe-promise.ts"
import type { Policy } from "../ground/policy.ts"
import type { WarningCode } from "../ground/warnings.ts"
import type { StoreStatus } from "./store-status.ts"

/** The identity of a counter: a policy's `counter` and a partition. Different pairs are different counters. */
export interface CounterKey {
  /** The compiled rule: what is counted and how. */
  readonly policy: Policy
  /**
   * The group of requests that are counted together. A string of bounded length, unambiguous within the policy. "" is
   * the whole service.
   */
  readonly partition: string
}

/** A request's check against one limit. */
export interface Check extends CounterKey {
  /** Quota units, a non-negative integer. 0 takes nothing and is always admitted. */
  readonly cost: number
  /** True if the check is counted and reported, but never refuses. If it does not fit, it takes nothing. */
  readonly shadow: boolean
}

/** The state of a counter. */
export interface CounterReading {
  /**
   * The counter's state. If units were taken from a strict window, `parts` may be an outline. An outline has the same
   * number of parts, with a unit in the oldest part and 0 in the others. Everything that is computed after a grant is
   * the same with an outline, so a store need not read the parts to grant. `startMs`, `current` and `previous` (the sum
   * of the parts) are always exact.
   */
  readonly state: CounterState
  /**
   * Age of the count in milliseconds, rounded up: the time since the shared counter was asked for it, or since a counter
   * that is written back was first used. Absent if the shared counter was asked for this request. Otherwise the count
   * comes from a lease, from this process, or from a remembered refusal.
   */
  readonly ageMs?: number
}

/** The state of a counter after its check, and the units that the check took. */
export interface Counted extends CounterReading {
  /** Units that the check took: its cost, or 0. */
  readonly taken: number
  /**
   * Milliseconds until the refused check fits if no other request is admitted, Infinity for never. Absent: the limiter
   * computes them from `state`.
   */
  readonly retryAfterMs?: number
  /**
   * The state right after the units were taken, if `state` is of a later time. This happens when a request takes units
   * from several servers, one after another. Later refunds apply to the window or bucket of this state.
   */
  readonly after?: CounterState
}

/** How the shared counters behind a store were reached. Absent members mean that they responded to this call. */
export interface StoreCondition {
  /** True if the store responded from its cache. Such a result does not show that the back end is available. */
  readonly isRemembered?: boolean
  /**
   * True if the store decided without the shared counters, because they have not responded for a while
   * (`writeBackStore`). The limiter reports such a decision as `degraded`, and does not decide again.
   */
  readonly isDegraded?: boolean
  /** Why the shared counters did not respond, with `isDegraded`. Absent if the cause is not known. */
  readonly failure?: StoreUnavailableError | undefined
}

/** The states of counters at one time. */
export interface StoreReading extends StoreCondition {
  /** The store's time of the states, in whole epoch milliseconds. */
  readonly nowMs: number
  /** The state of each counter, in the order of the checks. */
  readonly counters: readonly CounterReading[]
}

/** The outcome of a request: whether it was granted, and what was counted. */
export interface StoreResult extends StoreCondition {
  /** The store's time of the decision, in whole epoch milliseconds. */
  readonly nowMs: number
  /**
   * Whether every check was admitted, except shadow checks. If false, nothing was taken from any counter. Refusals that
   * count (`Store.take`) are in the states, but not in `taken`.
   */
  readonly granted: boolean
  /**
   * The result of each check, in the order of the checks. Undefined if the counter was not read because another counter
   * had already refused. This happens only if the request was not granted.
   */
  readonly checks: readonly (Counted | undefined)[]
  /**
   * Whole milliseconds for which the store will refuse the same request again without asking the shared counters, by a
   * hold-off (`leasedStore`). The limiter reports the longer of this time and the wait that it computes from the
   * counts. Absent: 0.
   */
  readonly againAfterMs?: number
}

/** A refund of units that a check has taken. */
export interface Refund extends CounterKey {
  /**
   * Units to refund. A negative number is charged on top of what was taken, even if it does not fit. A charge stops at
   * 2^53 - 1 units in use. If the policy's algorithm is "penalty", it blocks the counter for that many milliseconds.
   */
  readonly units: number
  /** The state right after the units were taken: `Counted.after`, or `Counted.state` if that is absent. */
  readonly after: CounterState
}

/**
 * The event for a counter that a full store evicted while it still had an effect. Its client gets its units back too
 * early. The store is too small.
 */
export interface EvictionEvent {
  /** The type of the event. */
  readonly type: "evicted"
  /** Counters evicted since the previous event: 1, unless a second has more evictions than events. */
  readonly counters: number
  /** Milliseconds for which the counter would still have counted. If there are several, this is the last one. */
  readonly emptyAfterMs: number
  /** Milliseconds for which the client would still have been refused, or 0 if it was not being refused. */
  readonly releaseAfterMs: number
}

/**
 * The event for units that a store could not refund, of requests that have already ended or of a lease. The units stay
 * taken until their window passes.
 */
export interface RefundLostEvent {
  /** The type of the event. */
  readonly type: "refund-lost"
  /** Why the units could not be refunded. */
  readonly error: StoreUnavailableError
}

/**
 * The event for units that this process has admitted and other counters did not confirm. The other counters are in
 * another data center (`mirroredStore`), or behind a store that writes back. They may admit the same units once more.
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

/** The event for a problem of a store's server that needs attention. A limiter logs it once for each subject. */
export interface StoreWarningEvent {
  /** The type of the event. */
  readonly type: "warning"
  /** The code of the warning: `SLUICE_STORE_EVICTS`, `SLUICE_STORE_CLOCK_BACK`. */
  readonly code: WarningCode
  /** The subject of the warning. Only the first warning about a subject is logged. */
  readonly subject: string
  /** The problem, and what to do. */
  readonly message: string
}

/** An event that a store reports to an operator. */
export type StoreEvent = EvictionEvent | RefundLostEvent | ChargesLostEvent | StoreWarningEvent

/**
 * Keeps counters, decides requests by them, and counts. The limiter computes from the store's result what the counts
 * mean for a client, in the same way for every store.
 *
 * Every method may return a value or a promise. It throws or rejects only if the back end failed, preferably with
 * {@link StoreUnavailableError}, and never because of a limit. The limiter checks the results of a store of your own. It
 * applies the deadlines, too, so the store need not.
 */
export interface Store {
  /**
   * True if other processes use the same counters. Then names must be unique beyond this process, and the limiter looks
   * up clients that other processes have blocked (`Limiter.block`). False if only this process uses the counters. A
   * worker of `node:cluster` then warns that each worker grants the whole limit. Absent: unknown.
   */
  readonly isShared?: boolean | undefined
  /** The status of the store. The status is read often, so the getter must be cheap. */
  readonly status?: StoreStatus | undefined
  /**
   * Takes the units of all checks of one request atomically. Either all checks are admitted and counted, or nothing is
   * taken. Shadow checks never prevent this. Other callers never see a part of it. `withinMs` is how long the caller
   * waits from now.
   *
   * If the request is refused, the same call counts the refusal of each check that would have been refused alone. The
   * check's own counter counts it if its policy has `countRejected`. A check of the algorithm "penalty" counts it if it
   * comes right after the refused check in the list. Both use `Algorithm.withRejected`. Shadow checks, and costs that
   * can never fit, are not counted. If the counters are on several servers that are asked one after another, the
   * counters after the refusal are not counted.
   */
  take(checks: readonly Check[], withinMs?: number): MaybePromise<StoreResult>
  /**
   * Returns the current states of the counters, as a `take` of these checks would find them. Takes nothing. Only a store
   * that holds units for its own process, such as `leasedStore`, needs more of a check than its counter.
   */
  read(checks: readonly Check[], withinMs?: number): MaybePromise<StoreReading>
  /**
   * Refunds units to the window or bucket they were taken from, never below zero. Units of an expired window are
   * dropped. `withinMs` is how long the caller waits from now. For a refund in the background, it is longer than for a
   * decision, and the store tries even while its circuit breaker is open.
   *
   * A failure is a {@link StoreUnavailableError}. Its `outcome` is "not-applied" if certainly no units were refunded.
   * Any other failure counts as "unknown", and the limiter does not retry the refund.
   */
  refund(refunds: readonly Refund[], withinMs?: number): MaybePromise<void>
  /** Deletes the counters. `withinMs` is how long the caller waits from now. */
  reset(keys: readonly CounterKey[], withinMs?: number): MaybePromise<void>
  /**
   * Calls the listener for each event that an operator should know of. Returns the function that removes the listener.
   */
  subscribe?(listener: (event: StoreEvent) => void): () => void
  /**
   * Frees the resources that the store opened. Afterwards all other methods throw or reject with {@link ClosedError}.
   */
  close(): MaybePromise<void>
}

/**
 * Timeout of a refund in the background. It is long enough not to lose units in a slow moment or a failover. It is
 * short enough that refunds do not pile up in an outage.
 */
export const BACKGROUND_REFUND_MS = 10_000
