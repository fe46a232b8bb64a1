import type { CounterState } from "./algorithm.ts"

/**
 * A window of at most so many units of time has a square below 2^53, so a share of any count is exact. In
 * milliseconds that is 26 hours, in seconds three years.
 */
const WIDEST_WINDOW = 94_000_000

/**
 * Milliseconds of one unit of time: 1, where the most that is counted times the window stays below 2^53; else
 * whole seconds, one or as many as it takes.
 */
export function timeUnitMs(most: number, windowMs: number): number {
  if (most * windowMs <= Number.MAX_SAFE_INTEGER) return 1
  return 1000 * Math.ceil(windowMs / 1000 / WIDEST_WINDOW)
}

/** floor(P * (W - e) / W): how much of a window's count the sliding one still covers, e milliseconds into the next. */
export function weighted(count: number, elapsedMs: number, windowMs: number, ceiling: number): number {
  if (count === 0) return 0
  const unitMs = timeUnitMs(Math.max(count, ceiling), windowMs)
  const window = Math.ceil(windowMs / unitMs)
  return share(count, window - Math.floor(elapsedMs / unitMs), window)
}

/**
 * The first offset x into the next window, in milliseconds, at which P * (W - x) < K * W: from there on the weighted
 * count is below K. 0 when it is so from the start; W at the latest, for K of at least 1.
 */
export function firstOffsetBelow(count: number, below: number, windowMs: number, ceiling: number): number {
  if (count < below) return 0
  const unitMs = timeUnitMs(Math.max(count, ceiling), windowMs)
  const window = Math.ceil(windowMs / unitMs)
  const product = (count - below) * window
  const offset = Math.floor(product / count)
  if (product <= Number.MAX_SAFE_INTEGER) return (offset + 1) * unitMs
  // The product was rounded, so the quotient may be one too many: count up from there.
  let exact = offset
  while (share(count, window - exact, window) >= below) exact++
  return exact * unitMs
}

/** floor(count * part / whole), exactly, for any count below 2^53 and part <= whole <= WIDEST_WINDOW. */
function share(count: number, part: number, whole: number): number {
  const product = count * part
  if (product <= Number.MAX_SAFE_INTEGER) return Math.floor(product / whole)
  return Math.floor(count / whole) * part + Math.floor(((count % whole) * part) / whole)
}

/**
 * The state with `units` more in its present count, which grows up to `most` and no further; one that is above it, since
 * the limit was cut, stays as it is. 8 counted, 5 refused, at most 10: 10.
 */
export function withCountedUpTo(most: number, state: CounterState, units: number): CounterState {
  const current = Math.max(state.current, Math.min(state.current + units, most))
  // The same object tells a store that there is nothing to write.
  return current === state.current ? state : { ...state, current }
}
