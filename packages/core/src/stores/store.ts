import type { CounterState } from "../algorithms/algorithm.ts"
import type { StoreUnavailableError } from "../ground/errors.ts"
import type { MaybePromise } from "../ground/maybe-promise.ts"
import type { Policy } from "../ground/policy.ts"

/** A counter is a policy's `counter` and a partition; no two pairs are the same counter. */
export interface CounterKey {
  /** What is counted and how: a rule, compiled. */
  readonly policy: Policy
  /** Whose requests are counted together: bounded text, unambiguous within the policy; "" is the whole service. */
  readonly partition: string
}

/** One limit that a request asks for. */
export interface Check extends CounterKey {
  /** Whole quota units, 0 and up. 0 takes nothing and is always admitted. */
  readonly cost: number
  /** Counted and reported, but it refuses nothing and, when it does not fit, takes nothing. */
  readonly shadow: boolean
}

/** What a counter holds after its check, and the units that the check took: its cost or 0. */
export interface Counted {
  /**
   * Of a strict window from which units were taken, `parts` may be an outline: as many parts as there are, of which the
   * oldest holds a unit and the others none. All that is computed from a grant is the same by it, and a store need not
   * read the counts of the parts to grant. `startMs`, `current` and `previous`, the sum of the parts, are always exact.
   */
  readonly state: CounterState
  /** Units that the check took: its cost, or 0. */
  readonly taken: number
  /**
   * What the counter held when they were taken, where `state` tells it as of a later time: of a request that took from
   * several servers one after the other. Units that are refunded later come off the window or bucket of this one.
   */
  readonly after?: CounterState
}

/**
 * The answer to one request: `checks[i]` answers its i-th check. Undefined is a counter that was not read, because another
 * one had refused already: only in a request that was not granted.
 */
export interface StoreResult {
  /** The store's time, in whole epoch milliseconds, at which it decided. */
  readonly nowMs: number
  /**
   * Whether every check that is not a shadow one was admitted. When false, nothing was taken from any counter; refusals
   * that count (`Store.take`) are in the states, and not in `taken`.
   */
  readonly granted: boolean
  /** What each check's counter holds now, in the order of the checks. */
  readonly checks: readonly (Counted | undefined)[]
  /** Whether it is what the store remembers, without a look at the back end: no sign that this one is there. */
  readonly isRemembered?: boolean
}

/** Units to refund that a check has taken. */
export interface Refund extends CounterKey {
  /**
   * A negative number is charged on top of what was taken, whether or not it fits, and no further than to 2^53 - 1 in use. Under a
   * policy of the algorithm "penalty" it blocks the counter for as many milliseconds.
   */
  readonly units: number
  /** What the counter held when they had been taken: `Counted.after` or, where there is none, `Counted.state`. */
  readonly after: CounterState
}

/**
 * A full store evicted a counter that still had an effect, so its client has its units again too early: the store is
 * too small.
 */
export interface EvictionEvent {
  /** Names the event; the only value. */
  readonly type: "evicted"
  /** Counters that were evicted since the event before: 1, unless more went within a second than there are events. */
  readonly counters: number
  /** Milliseconds for which the counter would still have counted: the last one, if there are several. */
  readonly emptyAfterMs: number
  /** Milliseconds for which its client would still have been refused; 0 if it was not being refused. */
  readonly releaseAfterMs: number
}

/** Units that a store could not refund, of requests that nobody decides anymore: they stay taken until their window passes. */
export interface RefundLostEvent {
  /** What happened. */
  readonly type: "refund-lost"
  /** Why the units could not be refunded. */
  readonly error: StoreUnavailableError
}

/** What a store reports to an operator. */
export type StoreEvent = EvictionEvent | RefundLostEvent

/**
 * Where counters are. Decides and counts; what the counts mean to a client is computed from the answer, the same for
 * every store.
 *
 * Any method may answer with a value or a promise. It throws or rejects only when the back end broke, preferably with
 * {@link StoreUnavailableError}, and never because of a limit.
 */
export interface Store {
  /**
   * True if other processes count in it too, so that names have to differ beyond this process, and clients that others have blocked
   * are looked for (`Limiter.block`). False if only this process does: a worker of `node:cluster` then warns that each worker grants
   * the whole limit. Absent: unknown.
   */
  readonly isShared?: boolean
  /**
   * Whether it rejects with {@link StoreUnavailableError} as soon as `withinMs` have passed, and counts nothing later for who
   * has stopped waiting. Who asks a store that does not say so keeps the time by itself.
   */
  readonly keepsDeadline?: boolean
  /**
   * How many of its servers nobody waits for now, because they have not answered: 0 while all is well. Of a store that has
   * such circuit breakers; for metrics, and a limiter has not recovered until it is 0 again.
   */
  readonly openBreakers?: number
  /**
   * How many milliseconds its last replies took, in any order, those included that came after the deadline. For a store that
   * keeps its deadline by itself; of any other store the limiter measures the answers that come too late.
   */
  readonly recentRoundTripsMs?: readonly number[]
  /**
   * Takes the units of each request, or none of them: all its checks that are not shadow ones are admitted and counted
   * together, atomically with regard to every other caller, or nothing is. `requests` are decided in order. `withinMs` is
   * how long the caller waits, from now.
   *
   * Of a request that is refused, each check that would have been refused by itself is counted, in the same call, where
   * its policy has `countRejected`, and in a policy of the algorithm "penalty" where that comes right after it in the
   * list; both by `Algorithm.withRejected`. Not so shadow checks, nor costs that never fit. Where a request's counters are
   * in several places that are asked one after the other, those that come after the refusal are not counted.
   */
  take(requests: readonly (readonly Check[])[], withinMs?: number): MaybePromise<readonly StoreResult[]>
  /**
   * Whether `take` would grant each request, asked alone, and what its counters hold now: takes nothing, so `taken` is
   * 0 in every check.
   */
  peek(requests: readonly (readonly Check[])[], withinMs?: number): MaybePromise<readonly StoreResult[]>
  /**
   * Refunds units to the window or bucket they were taken from, never below zero; units of a window that has passed are
   * dropped. `withinMs` is how long the caller waits, from now. It is longer than for a decision when nobody waits for the
   * refund; then the store tries even while its circuit breaker is open.
   *
   * A failure is a {@link StoreUnavailableError} whose `outcome` is "not-applied" when certainly no units were refunded.
   * Any other failure counts as "unknown", and the limiter does not refund again.
   */
  refund(refunds: readonly Refund[], withinMs?: number): MaybePromise<void>
  /** Forgets the counters. `withinMs` is how long the caller waits, from now. */
  reset(keys: readonly CounterKey[], withinMs?: number): MaybePromise<void>
  /** Calls the listener when something happens that an operator should know. Returns the function that stops this. */
  subscribe?(listener: (event: StoreEvent) => void): () => void
  /** Frees what the store itself opened. Afterwards every method but this one throws or rejects with {@link ClosedError}. */
  close(): MaybePromise<void>
}

/**
 * Timeout of a refund that nobody waits for: long enough that a slow moment or a failover loses no units, and short enough
 * that refunds do not pile up in an outage.
 */
export const BACKGROUND_REFUND_MS = 10_000
