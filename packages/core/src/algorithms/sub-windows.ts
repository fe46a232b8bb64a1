import { ceilingOf, type Policy } from "../ground/policy.ts"
import type { CounterState } from "./algorithm.ts"
import { withCountedUpTo } from "./exact-counts.ts"
import { countOf, numberAt, pack, shift, unpack } from "./packed-counts.ts"

// A window in n sub-windows: `current` is the count of the present one, `parts` has those of the n before it, the latest
// first, and `previous` is their sum, so that most decisions look at no part at all.

/**
 * How many sub-windows cover a policy's window: as many as it asks for, or fewer where its milliseconds cannot be parted
 * so finely. 60 of 61 ms would be 2 ms each, and 31 of them are enough.
 */
export function bucketsOf(policy: Policy): number {
  return Math.ceil(policy.windowMs / bucketMsOf(policy))
}

/** Their length in milliseconds: rounded up, so that together they are never shorter than the window. */
export function bucketMsOf({ windowMs, buckets }: Policy): number {
  return Math.ceil(windowMs / (buckets as number))
}

/** The state as it stands at `nowMs`. When the clock went back, what is ahead of it counts as of the present sub-window. */
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
 * The state of so many units when the clock went back by so many sub-windows. Units of those that are ahead of it move into
 * the present one, where they stay for a window at least; all others are where they were, so they pass when they would have
 * passed.
 */
function broughtBack(units: number, parts: string, startMs: number, by: number): CounterState {
  // The latest of them is the one that is the present one now.
  const before = unpack(parts).slice(by)
  const left = before.reduce((sum, count) => sum + count, 0)
  const moved = Math.min(units - left, Number.MAX_SAFE_INTEGER - left)
  return { startMs, current: moved, previous: left, parts: pack(before) }
}

/** Refused units count in the present sub-window, up to the ceiling, and so that the sum of all stays a safe integer. */
export function subWindowsWithRejected(state: CounterState, policy: Policy, units: number): CounterState {
  const most = Math.min(ceilingOf(policy), Number.MAX_SAFE_INTEGER - state.previous)
  return withCountedUpTo(most, state, units)
}

/** The state without units of the sub-window that started then, which is the present one or one of those before it. */
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

/** Epoch milliseconds from which no sub-window that holds anything is covered. */
export function subWindowsEndAtMs({ startMs, current, parts = "" }: CounterState, policy: Policy): number {
  const most = bucketsOf(policy)
  if (current > 0) return startMs + (most + 1) * bucketMsOf(policy)
  for (let index = 0; index < countOf(parts); index++) {
    if (numberAt(parts, index) > 0) return startMs + (most - index) * bucketMsOf(policy)
  }
  return startMs
}

/**
 * The count of the sub-window that is the oldest of n when `by` more of them have passed; `by` of n is the present one,
 * and later there is none.
 */
export function oldestAfter({ current, parts = "" }: CounterState, policy: Policy, by: number): number {
  const index = bucketsOf(policy) - 1 - by
  return index >= 0 ? numberAt(parts, index) : index === -1 ? current : 0
}
