import type { Policy } from "../ground/policy.ts"

/**
 * The state of one counter. The meaning of its integers depends on the algorithm. Counts may exceed the limit if the
 * limit was lowered, or if units are admitted above the limit.
 *
 * | | `startMs` | `current` | `previous` | `parts` |
 * | --- | --- | --- | --- | --- |
 * | windows | start of the current window | units of the current window | units of the previous window (fixed: 0) | |
 * | calendar periods | start of the current period | units of the current period | units granted in addition to the limit | |
 * | windows with sub-windows | start of the current sub-window | units of the current sub-window | units of all earlier sub-windows | units of each earlier sub-window |
 * | log | time of the latest entry, or of a later take of 0 units | units of all entries | 0 | each entry |
 * | penalty | first refusal, or start of the block | refusals; 0 for an operator's block | the client's step, and whether the client is blocked | |
 * | buckets | time of this level | whole units in use | the fraction of a unit, in parts of the window | |
 */
export interface CounterState {
  /**
   * Epoch milliseconds. Later than the current time only after the clock went back, and then at most a window later.
   */
  readonly startMs: number
  /** Whole units in use in the current window, or in total if the algorithm does not separate windows. */
  readonly current: number
  /** Other units in use, or units that still count only in part. */
  readonly previous: number
  /**
   * The individual counts or entries, packed in printable ASCII. If absent, equal to an empty string. In a
   * store's result, the parts may be an outline ({@link Counted}).
   */
  readonly parts?: string
}

/**
 * A counting algorithm: pure functions of state, policy, cost and time, without clock or I/O. All numbers are integers.
 * Costs are non-negative units. Times are epoch milliseconds of the store's own clock.
 *
 * Every function except `at` takes a state that `at` has computed for the same `nowMs`.
 */
export interface Algorithm {
  /**
   * Returns the state at `nowMs`, without expired units. `undefined` stands for an unused counter.
   *
   * If the clock went back, all units count as if they were taken in the current or the next window, so no unit is
   * admitted twice. A refused client then waits at most two windows. The store must write the returned state even if
   * it takes no units. Otherwise the stored state would stay ahead of the clock.
   */
  at(state: CounterState | undefined, policy: Policy, nowMs: number): CounterState
  /** Whether `cost` more units fit within the policy's ceiling. A cost of 0 always fits. */
  admits(state: CounterState, policy: Policy, cost: number, nowMs: number): boolean
  /**
   * Returns the whole units of the policy's capacity that are in use now. Below 0 if more units are granted in addition to
   * the limit than are in use.
   */
  used(state: CounterState, policy: Policy, nowMs: number): number
  /**
   * Returns the milliseconds until `cost` units fit if no other request is admitted. 0 if they fit now, and Infinity
   * if they never fit.
   */
  retryAfterMs(state: CounterState, policy: Policy, cost: number, nowMs: number): number
  /** Returns the milliseconds until the counter is unused again if no request arrives. */
  resetAfterMs(state: CounterState, policy: Policy, nowMs: number): number
  /**
   * Returns the time, in epoch milliseconds, at which the state becomes equivalent to an empty state. A store may
   * delete the state then, but not earlier.
   */
  emptyAtMs(state: CounterState, policy: Policy): number
  /**
   * True if `emptyAtMs` depends on settings that a rule may change without new counters. Examples are a bucket's
   * refill rate and the length of a block. A store that reads such a state must extend the expiry of the state to
   * `emptyAtMs`. Absent: false.
   */
  readonly endsByRule?: boolean
  /** Whether the states of the algorithm have `parts`. Absent: false. */
  readonly hasParts?: boolean
  /**
   * Returns the state with `units` more taken now, whether or not they fit. With 0 units, a store returns the state
   * but need not write it. A later charge uses this state to count its units as if they were taken now.
   */
  withUnits(state: CounterState, policy: Policy, units: number, nowMs: number): CounterState
  /**
   * Returns the state after `units` were refused but count nevertheless (`policy.countRejected`). The current count
   * grows at most to the ceiling. So a client that retries without a pause waits no longer than a client that has
   * just used up the limit. Call it only for units within the ceiling that `admits` refuses.
   */
  withRejected(state: CounterState, policy: Policy, units: number, nowMs: number): CounterState
  /**
   * Returns the state after a refund of `units`. `after` is the state right after these units were taken. The units
   * are subtracted from the window or bucket that they were taken from, but never below zero. Units that have already
   * expired are ignored.
   */
  withoutUnits(
    state: CounterState,
    policy: Policy,
    units: number,
    after: CounterState,
    nowMs: number,
  ): CounterState
  /**
   * Returns the state with a full counter. A charge passes it to `withoutUnits` as `after`. Otherwise, units that are
   * refilled over time would count as refunded, although later requests may have used them. If absent, a charge uses
   * the state itself.
   */
  filled?(state: CounterState, policy: Policy): CounterState
  /**
   * Returns the milliseconds for which the latest `units` taken wait for their turn. Absent if admitted requests do
   * not wait.
   */
  delayMs?(state: CounterState, policy: Policy, units: number, nowMs: number): number
}
