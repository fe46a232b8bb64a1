import type { Policy } from "../ground/policy.ts"

/**
 * What one counter holds, in whole numbers; what each means is the algorithm's own. Counts may exceed the limit, after
 * it was cut or where units are admitted above it.
 *
 * | | `startMs` | `current` | `previous` | `parts` |
 * | --- | --- | --- | --- | --- |
 * | windows | start of the present window | units in it | units in the one before (0: fixed) | |
 * | windows with sub-windows | start of the present sub-window | units in it | units in all before it | each of them |
 * | log | the latest entry, or a take of nothing since | units in all entries | 0 | each entry |
 * | penalty | first refusal, or when the block began | refusals; 0: blocked by hand | 1: blocked, else 0; by hand: for how many ms | |
 * | buckets | when it held so much | whole units in use | the rest of one, in parts of the window | |
 */
export interface CounterState {
  /** Epoch milliseconds; ahead of the time only after the clock went back, and then by a window at most. */
  readonly startMs: number
  /** Whole units in use: of the present window, or of all that counts where there is no window before it. */
  readonly current: number
  /** What is in use besides, or still counts in part. */
  readonly previous: number
  /**
   * The single counts or entries, packed in printable ASCII. Absent is the same as empty. What a store tells may be an
   * outline: {@link Counted}.
   */
  readonly parts?: string
}

/**
 * Counting, as pure functions of state, policy, cost and time: no clock, no I/O, integers in and integers out.
 * Costs are non-negative whole units; times are whole epoch milliseconds of the store's own clock.
 *
 * Every function but `at` takes a state that `at` has brought to the same `nowMs`.
 */
export interface Algorithm {
  /**
   * The state as it stands at `nowMs`: what has passed is dropped. `undefined` is a counter that nobody has
   * taken from. When the clock went back, every unit is kept, as if it had been taken in the present window or the
   * next, so nothing is admitted twice. Who is refused waits at most two windows, provided the store keeps this state
   * even when it takes nothing: a state that is brought back anew each time would stay ahead of the clock.
   */
  at(state: CounterState | undefined, policy: Policy, nowMs: number): CounterState
  /** Whether `cost` more units are within the policy's ceiling; no units always are. */
  admits(state: CounterState, policy: Policy, cost: number, nowMs: number): boolean
  /** Whole units in use now, of the policy's capacity. */
  used(state: CounterState, policy: Policy, nowMs: number): number
  /** Milliseconds until `cost` units would first be admitted if nobody else came: 0 now, Infinity never. */
  retryAfterMs(state: CounterState, policy: Policy, cost: number, nowMs: number): number
  /** Milliseconds until nothing is in use if nobody asks. */
  resetAfterMs(state: CounterState, policy: Policy, nowMs: number): number
  /** Epoch milliseconds from which the state equals an empty one. A store may forget it then, and not before. */
  emptyAtMs(state: CounterState, policy: Policy): number
  /**
   * Whether `emptyAtMs` depends on what a rule may change while its counters stay: how fast a bucket fills, how long a
   * block lasts. Who looks at such a state has it kept until then, although it was to be forgotten sooner. Absent is no.
   */
  readonly endsByRule?: boolean
  /** Whether its states have `parts`. Absent is no. */
  readonly hasParts?: boolean
  /**
   * The state with `units` more taken now, whether or not they fit. Of none it is the state to tell, by which something may
   * be charged later as of now; no store has to write it.
   */
  withUnits(state: CounterState, policy: Policy, units: number, nowMs: number): CounterState
  /**
   * The state after `units` were refused that count all the same (`policy.countRejected`): the present count grows up to
   * the ceiling and no further, so that whoever knocks without a pause is never further from an admission than who has
   * just used all. Only for units that `admits` refuses and that are within the ceiling.
   */
  withRejected(state: CounterState, policy: Policy, units: number, nowMs: number): CounterState
  /**
   * The state without `units` that were taken when it was left as `after`: they come off the window or bucket they were
   * taken in, never below zero. What has passed of them is nothing.
   */
  withoutUnits(
    state: CounterState,
    policy: Policy,
    units: number,
    after: CounterState,
    nowMs: number,
  ): CounterState
  /** How long `units` that were the last to be taken wait for their turn, in milliseconds. Absent is not at all. */
  delayMs?(state: CounterState, policy: Policy, units: number, nowMs: number): number
}
