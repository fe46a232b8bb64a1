import { ceilingOf, type Policy } from "../ground/policy.ts"
import type { Algorithm, CounterState } from "./algorithm.ts"
import { withCountedUpTo } from "./exact-counts.ts"
import { fixedWindow } from "./fixed-window.ts"

/**
 * Most units that are granted in a period. A limit is at most half of 2^53, so a counter with a quarter of granted units
 * and as many used ones above the limit is still an exact sum.
 */
const MOST_GRANTED = Math.floor(Number.MAX_SAFE_INTEGER / 4)

/** A period: from its first millisecond to the first one after it. */
interface Period {
  readonly startMs: number
  readonly endMs: number
}

/**
 * Returns the period that contains a time. Before the first and after the last boundary of the policy, periods have the
 * policy's window as their length. The store's clock may be that far from the clock of the process that sends the
 * boundaries.
 */
export function periodAt({ periods, windowMs }: Policy, ms: number): Period {
  const boundaries = periods as readonly number[]
  // No closure here, because every decision looks up its period several times.
  let next = 0
  while (next < boundaries.length && (boundaries[next] as number) <= ms) next++
  const isAround = next > 0 && next < boundaries.length
  if (isAround) return { startMs: boundaries[next - 1] as number, endMs: boundaries[next] as number }
  const fromMs = boundaries[next === 0 ? 0 : next - 1] as number
  const startMs = fromMs + Math.floor((ms - fromMs) / windowMs) * windowMs
  return { startMs, endMs: startMs + windowMs }
}

/** Returns the length of the period that contains a time, in milliseconds. */
export function periodMsAt(policy: Policy, ms: number): number {
  const { startMs, endMs } = periodAt(policy, ms)
  return endMs - startMs
}

/** Returns the milliseconds until the period of a state ends. `at` has computed the state for the same `nowMs`. */
export function periodEndsAfterMs(state: CounterState, policy: Policy, nowMs: number): number {
  return endOf(state, policy) - nowMs
}

/**
 * The fixed window whose windows are the calendar periods of the policy, such as months. A period ends at its own end,
 * whatever its length. The units that an operator has granted for the period (`previous`) are admitted in addition to the
 * limit. Otherwise the formulas are those of {@link fixedWindow}.
 *
 * If the boundaries change, because the client has a new anchor or its time zone new rules, the units count on in the
 * new period that contains the beginning of their own period. Units of an earlier period no longer count. The same
 * applies to granted units. The state keeps its beginning, because processes that disagree about the boundaries would
 * otherwise clear it in turn.
 */
export const calendarWindow: Algorithm = {
  ...fixedWindow,

  at(state, policy, nowMs) {
    const { startMs, endMs } = periodAt(policy, nowMs)
    if (state === undefined || isUnused(state) || state.startMs < startMs)
      return { startMs, current: 0, previous: 0 }
    // The clock went back, as in a fixed window.
    return state.startMs > nowMs ? { ...state, startMs: Math.min(state.startMs, endMs) } : state
  },

  admits: ({ current, previous }, policy, cost) =>
    cost === 0 || current + cost <= ceilingOf(policy) + previous,

  used: ({ current, previous }) => current - previous,

  retryAfterMs(state, policy, cost, nowMs) {
    if (calendarWindow.admits(state, policy, cost, nowMs)) return 0
    // In the next period, nothing is granted.
    return cost > ceilingOf(policy) ? Number.POSITIVE_INFINITY : endOf(state, policy) - nowMs
  },

  resetAfterMs: (state, policy, nowMs) => (isUnused(state) ? 0 : endOf(state, policy) - nowMs),

  emptyAtMs: (state, policy) => (isUnused(state) ? state.startMs : endOf(state, policy)),

  withUnits({ startMs, current, previous }, _policy, units) {
    return { startMs, current: current + units, previous }
  },

  withRejected: (state, policy, units) => withCountedUpTo(ceilingOf(policy) + state.previous, state, units),

  withoutUnits(state, policy, units, after) {
    if (periodAt(policy, after.startMs).startMs !== periodAt(policy, state.startMs).startMs) return state
    return { ...state, current: Math.max(0, state.current - units) }
  },
}

/**
 * The calendar window of an operator who grants units. A refund grants its units for the current period, and a charge takes
 * granted units back.
 */
export const calendarGrant: Algorithm = {
  ...calendarWindow,

  withoutUnits(state, _policy, units) {
    return { ...state, previous: Math.max(0, Math.min(state.previous + units, MOST_GRANTED)) }
  },
}

function isUnused({ current, previous }: CounterState): boolean {
  return current === 0 && previous === 0
}

function endOf({ startMs }: { readonly startMs: number }, policy: Policy): number {
  return periodAt(policy, startMs).endMs
}
