import { ceilingOf, type Policy } from "../ground/policy.ts"
import type { Algorithm, CounterState } from "./algorithm.ts"
import {
  entryWidth,
  FIRST,
  logOf,
  type PackedLog,
  placeOf,
  replaced,
  timeAt,
  unitsAt,
  unitsBetween,
} from "./packed-log.ts"

/**
 * The sliding log stores every admission with its time. The log admits a request if the cost plus the units of the
 * past W (including both ends) are within the limit. The count is exact, so any window of length W admits at most L.
 * An entry needs about 7 bytes.
 *
 * `parts` contains the entries (packed-log.ts). `startMs` is the time of the latest entry, or of a later take of 0
 * units. The log contains an entry for such a take only after units are charged for it.
 */
export const slidingLog: Algorithm = {
  hasParts: true,

  at(state, policy, nowMs) {
    if (state === undefined || state.current === 0 || !state.parts) return empty(nowMs)
    const log = logOf(state, policy)
    if (state.startMs > nowMs) {
      // The clock went back. Entries in the future count as if they were taken now.
      return withLast(state, log, placeOf(log, nowMs), 0, nowMs)
    }
    const oldestMs = nowMs - policy.windowMs
    if (timeAt(log, FIRST) >= oldestMs) return state
    const to = placeOf(log, oldestMs)
    if (to === log.end) return empty(nowMs)
    const { startMs, current } = state
    const parts = replaced(log, FIRST, to, nowMs, 0)
    return { startMs, current: current - unitsBetween(log, FIRST, to), previous: 0, parts }
  },

  admits({ current }, policy, cost) {
    return cost === 0 || current + cost <= ceilingOf(policy)
  },

  used({ current }) {
    return current
  },

  retryAfterMs(state, policy, cost, nowMs) {
    if (cost === 0) return 0
    const ceiling = ceilingOf(policy)
    if (cost > ceiling) return Number.POSITIVE_INFINITY
    let used = state.current
    if (used + cost <= ceiling) return 0
    const log = logOf(state, policy)
    for (let place = FIRST; place < log.end; place += entryWidth(log)) {
      used -= unitsAt(log, place)
      if (used + cost <= ceiling) return timeAt(log, place) + policy.windowMs + 1 - nowMs
    }
    return Number.POSITIVE_INFINITY
  },

  resetAfterMs(state, policy, nowMs) {
    return state.current === 0 ? 0 : endMs(state, policy) - nowMs
  },

  emptyAtMs(state, policy) {
    return state.current === 0 ? state.startMs : endMs(state, policy)
  },

  withUnits(state, policy, units, nowMs) {
    // A take of 0 units does not add an entry, but a later charge for that request is recorded at this instant.
    const log = logOf(state, policy)
    const lastMs = latestMs(log)
    return withLast(state, log, lastMs === nowMs ? log.end - entryWidth(log) : log.end, units, nowMs)
  },

  withRejected(state, policy, units, nowMs) {
    // Replace the oldest units by the refused units, so that repeated refusals do not make the log longer.
    const most = Math.max(ceilingOf(policy), state.current)
    const kept = withoutOldest(state, policy, state.current + units - most, nowMs)
    return slidingLog.withUnits(kept, policy, units, nowMs)
  },

  withoutUnits(state, policy, units, after, nowMs) {
    // If the clock went back, a charge counts as if its units were taken now, like all entries in the future.
    const takenMs = units < 0 ? Math.min(after.startMs, nowMs) : after.startMs
    const log = logOf(state, policy)
    const from = placeOf(log, takenMs)
    const isThere = from < log.end && timeAt(log, from) === takenMs
    // Without an entry, there is nothing to refund. A charge creates the entry if the time of the take is still in
    // the window.
    if (!isThere && (units >= 0 || takenMs < nowMs - policy.windowMs)) return state
    const before = isThere ? unitsAt(log, from) : 0
    const left = Math.max(0, before - units)
    const parts = replaced(log, from, isThere ? from + entryWidth(log) : from, takenMs, left)
    if (parts === "") return empty(nowMs)
    return {
      startMs: Math.max(state.startMs, takenMs),
      current: state.current - before + left,
      previous: 0,
      parts,
    }
  },
}

function empty(nowMs: number): CounterState {
  return { startMs: nowMs, current: 0, previous: 0, parts: "" }
}

/** Returns the time of the latest entry, or undefined if the log is empty. */
function latestMs(log: PackedLog): number | undefined {
  return log.end === FIRST ? undefined : timeAt(log, log.end - entryWidth(log))
}

/** Returns the epoch milliseconds at which the latest entry has left the window. */
function endMs(state: CounterState, policy: Policy): number {
  return (latestMs(logOf(state, policy)) ?? state.startMs) + policy.windowMs + 1
}

/** Merges the entries from `from` on into one entry at `nowMs`, adds `units` to it, and returns the state. */
function withLast(
  { current }: CounterState,
  log: PackedLog,
  from: number,
  units: number,
  nowMs: number,
): CounterState {
  const last = unitsBetween(log, from, log.end) + units
  const parts = replaced(log, from, log.end, nowMs, last)
  return { startMs: nowMs, current: current + units, previous: 0, parts }
}

/** Returns the state without the oldest `units` units. */
function withoutOldest(state: CounterState, policy: Policy, units: number, nowMs: number): CounterState {
  const log = logOf(state, policy)
  let rest = units
  let place = FIRST
  let there = 0
  while (place < log.end) {
    there = unitsAt(log, place)
    if (there > rest) break
    rest -= there
    place += entryWidth(log)
  }
  if (place >= log.end) return empty(nowMs)
  // The first entry that stays may lose some of its units.
  const parts = replaced(log, FIRST, place + entryWidth(log), timeAt(log, place), there - rest)
  return { ...state, current: state.current - units, parts }
}
