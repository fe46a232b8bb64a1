import type { Policy } from "../policy.ts"

/**
 * What one counter holds, in quota units and epoch milliseconds. An algorithm with a single window leaves `previous`
 * at 0. Counts may exceed the limit, after the limit was cut.
 */
export interface CounterState {
  readonly previous: number
  readonly current: number
  /** Start of the window that `current` counts; ahead of the time only after the clock went back. */
  readonly startMs: number
}

/**
 * Counting, as pure functions of state, policy, cost and time: no clock, no I/O, integers in and integers out.
 * Costs are non-negative whole units; times are whole epoch milliseconds of the store's own clock.
 *
 * Every function but `at` takes a state that `at` has brought to the same `nowMs`.
 */
export interface Algorithm {
  /**
   * The state as it stands at `nowMs`: windows that have passed are dropped. `undefined` is a counter that nobody has
   * taken from. When the clock went back, every unit is kept, as if it had been taken in the present window or the
   * next, so nothing is admitted twice. Who is refused waits at most two windows, provided the store keeps this state
   * even when it takes nothing: a state that is brought back anew each time would stay ahead of the clock.
   */
  at(state: CounterState | undefined, policy: Policy, nowMs: number): CounterState
  /** Whether `cost` more units are within the limit; no units always are. */
  admits(state: CounterState, policy: Policy, cost: number, nowMs: number): boolean
  /** Whole units that would be admitted now; never below 0. */
  remaining(state: CounterState, policy: Policy, nowMs: number): number
  /** Milliseconds until `cost` units would first be admitted if nobody else came: 0 now, Infinity never. */
  retryAfterMs(state: CounterState, policy: Policy, cost: number, nowMs: number): number
  /** Milliseconds until `remaining` equals the limit if nobody asks. */
  resetAfterMs(state: CounterState, policy: Policy, nowMs: number): number
  /** Epoch milliseconds from which the state equals an empty one. A store may forget it then, and not before. */
  emptyAtMs(state: CounterState, policy: Policy): number
  /** The state with `units` more taken now. */
  withUnits(state: CounterState, policy: Policy, units: number): CounterState
  /**
   * The state without `units` that were taken in the window that started at `takenInMs`: they come off that window,
   * never below zero. When it has passed they are nothing.
   */
  withoutUnits(state: CounterState, policy: Policy, units: number, takenInMs: number): CounterState
}
