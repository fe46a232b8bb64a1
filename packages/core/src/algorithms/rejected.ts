import type { CounterState } from "./algorithm.ts"

/**
 * The state with `units` more in its present count, which grows up to `most` and no further; one that is above it, since
 * the limit was cut, stays as it is. 8 counted, 5 refused, at most 10: 10.
 */
export function withCountedUpTo(most: number, state: CounterState, units: number): CounterState {
  const current = Math.max(state.current, Math.min(state.current + units, most))
  // The same object tells a store that there is nothing to write.
  return current === state.current ? state : { ...state, current }
}
