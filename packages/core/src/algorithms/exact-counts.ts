import type { CounterState } from "./algorithm.ts"

/**
 * The longest window, in units of time, whose square is below 2^53, so that `share` is exact for any count. This
 * length is 26 hours if the unit is a millisecond, and three years if the unit is a second.
 */
const WIDEST_WINDOW = 94_000_000

/**
 * Returns the length of a unit of time in milliseconds. The length is 1 if `most` (the highest count) times the
 * window stays below 2^53. Otherwise the length is a second, or several seconds for a very long window.
 */
export function timeUnitMs(most: number, windowMs: number): number {
  if (most * windowMs <= Number.MAX_SAFE_INTEGER) return 1
  return 1000 * Math.ceil(windowMs / 1000 / WIDEST_WINDOW)
}

/**
 * Returns floor(P * (W - e) / W), where e is the time since the current window started. The result is the share of
 * the previous window's count that the sliding window still covers.
 */
export function weighted(count: number, elapsedMs: number, windowMs: number, ceiling: number): number {
  if (count === 0) return 0
  const unitMs = timeUnitMs(Math.max(count, ceiling), windowMs)
  const window = Math.ceil(windowMs / unitMs)
  return share(count, window - Math.floor(elapsedMs / unitMs), window)
}

/**
 * Returns the first offset x into the next window, in milliseconds, at which P * (W - x) < K * W. From this offset
 * on, the weighted count is below K. The result is 0 if the count is below K from the start, and at most W if K is at
 * least 1.
 */
export function firstOffsetBelow(count: number, below: number, windowMs: number, ceiling: number): number {
  if (count < below) return 0
  const unitMs = timeUnitMs(Math.max(count, ceiling), windowMs)
  const window = Math.ceil(windowMs / unitMs)
  const product = (count - below) * window
  const offset = Math.floor(product / count)
  if (product <= Number.MAX_SAFE_INTEGER) return (offset + 1) * unitMs
  // The product was rounded, so the quotient may be 1 too high. Search from the quotient instead of adding 1.
  let exact = offset
  while (share(count, window - exact, window) >= below) exact++
  return exact * unitMs
}

/** Returns exactly floor(count * part / whole), for any count below 2^53 and part <= whole <= WIDEST_WINDOW. */
function share(count: number, part: number, whole: number): number {
  const product = count * part
  if (product <= Number.MAX_SAFE_INTEGER) return Math.floor(product / whole)
  return Math.floor(count / whole) * part + Math.floor(((count % whole) * part) / whole)
}

/**
 * Returns the state with `units` added to its current count, up to `most`. A count above `most` stays unchanged,
 * because the limit was lowered. For example, with a count of 8, 5 refused units and a `most` of 10, the count
 * becomes 10.
 */
export function withCountedUpTo(most: number, state: CounterState, units: number): CounterState {
  const current = Math.max(state.current, Math.min(state.current + units, most))
  // Return the same object if nothing changes, so that the store need not write.
  return current === state.current ? state : { ...state, current }
}
