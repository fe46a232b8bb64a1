import { ceilingOf, type Policy } from "../ground/policy.ts"
import type { CounterState } from "./algorithm.ts"
import { withCountedUpTo } from "./exact-counts.ts"
import { countOf, numberAt, pack, shift, unpack } from "./packed-counts.ts"

// A window is divided into n sub-windows. `current` is the count of the current sub-window. `parts` contains the
// counts of the n sub-windows before it, the latest first. `previous` is the sum of `parts`, so most decisions need
// not read them.

/**
 * Returns how many sub-windows cover a policy's window. The result is the requested number, or a smaller number if
 * the window does not have enough milliseconds. For example, if 60 sub-windows are requested for 61 ms, each
 * sub-window has 2 ms, and 31 of them are enough.
 */
export function bucketsOf(policy: Policy): number {
  return Math.ceil(policy.windowMs / bucketMsOf(policy))
}

/**
 * Returns the length of a sub-window in milliseconds, rounded up, so that all sub-windows together cover at least the
 * window.
 */
export function bucketMsOf({ windowMs, buckets }: Policy): number {
  return Math.ceil(windowMs / (buckets as number))
}

/** Returns the state at `nowMs`. If the clock went back, units in the future count in the current sub-window. */
export function subWindowsAt(state: CounterState | undefined, policy: Policy, nowMs: number): CounterState {
  const bucketMs = bucketMsOf(policy)
  const startMs = nowMs - (nowMs % bucketMs)
  if (state === undefined) return { startMs, current: 0, previous: 0, parts: "" }
  if (state.startMs === startMs) return state
  const { current, previous, parts = "" } = state
  const by = (startMs - state.startMs) / bucketMs
  if (by < 0) return broughtBack(previous + current, parts, startMs, -by)
  const most = bucketsOf(policy)
  if (by > most) return { startMs, current: 0, previous: 0, parts: "" }
  let left = previous + current
  const kept = Math.min(countOf(parts), most - by)
  for (let index = kept; index < countOf(parts); index++) left -= numberAt(parts, index)
  return { startMs, current: 0, previous: left, parts: shift(parts, by - 1, current, kept) }
}

/**
 * Returns the state after the clock went back by `by` sub-windows. `units` is the sum of all counts. Units in future
 * sub-windows move into the current sub-window, where they count for at least a window. All other units stay where
 * they are and expire at the same time as before.
 */
function broughtBack(units: number, parts: string, startMs: number, by: number): CounterState {
  // After the slice, the first part belongs to the sub-window before the current sub-window.
  const before = unpack(parts).slice(by)
  const left = before.reduce((sum, count) => sum + count, 0)
  const moved = Math.min(units - left, Number.MAX_SAFE_INTEGER - left)
  return { startMs, current: moved, previous: left, parts: pack(before) }
}

/** Returns the state with refused units in the current sub-window, up to the ceiling. The sum stays a safe integer. */
export function subWindowsWithRejected(state: CounterState, policy: Policy, units: number): CounterState {
  const most = Math.min(ceilingOf(policy), Number.MAX_SAFE_INTEGER - state.previous)
  return withCountedUpTo(most, state, units)
}

/** Returns the state without `units` of the sub-window that started at `takenInMs`, if that sub-window still counts. */
export function withoutUnitsOf(
  state: CounterState,
  policy: Policy,
  units: number,
  takenInMs: number,
): CounterState {
  const { startMs, current, previous, parts = "" } = state
  if (takenInMs === startMs) return { startMs, current: Math.max(0, current - units), previous, parts }
  const index = (startMs - takenInMs) / bucketMsOf(policy) - 1
  if (!(index >= 0 && index < bucketsOf(policy))) return state
  const numbers = unpack(parts)
  while (numbers.length <= index) numbers.push(0)
  const counted = numbers[index] as number
  const left = Math.max(0, counted - units)
  numbers[index] = left
  return { startMs, current, previous: previous - counted + left, parts: pack(numbers) }
}

/** Returns the epoch milliseconds from which the window does not cover any sub-window with units. */
export function subWindowsEndAtMs({ startMs, current, parts = "" }: CounterState, policy: Policy): number {
  const most = bucketsOf(policy)
  if (current > 0) return startMs + (most + 1) * bucketMsOf(policy)
  for (let index = 0; index < countOf(parts); index++) {
    if (numberAt(parts, index) > 0) return startMs + (most - index) * bucketMsOf(policy)
  }
  return startMs
}

/**
 * Returns the count of the sub-window that will be the oldest of n after `by` more sub-windows have passed. If `by`
 * equals n, this is the current sub-window. With a larger `by`, the result is 0.
 */
export function oldestAfter({ current, parts = "" }: CounterState, policy: Policy, by: number): number {
  const index = bucketsOf(policy) - 1 - by
  return index >= 0 ? numberAt(parts, index) : index === -1 ? current : 0
}
