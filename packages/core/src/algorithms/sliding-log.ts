import { ceilingOf, type Policy } from "../policy.ts"
import type { Algorithm, CounterState } from "./algorithm.ts"
import { digits, digitsFor, flat, parseDigits } from "./packed-counts.ts"

/** What was taken at one instant. */
interface Entry {
  readonly atMs: number
  readonly units: number
}

/**
 * The sliding log: every admission with its time. Admits when the units of the last W, both ends included, and the cost
 * are within the limit: never more than L in any window of length W, and exact. Takes some 7 bytes an entry.
 *
 * `parts` has the entries, the oldest first: a digit that says how many digits the units have, then for each entry its
 * time, as the last few digits of its epoch milliseconds, and its units. `startMs` is the time of the latest.
 */
export const slidingLog: Algorithm = {
  at(state, policy, nowMs) {
    if (state === undefined || state.current === 0)
      return { startMs: nowMs, current: 0, previous: 0, parts: "" }
    if (state.startMs > nowMs) {
      // The clock went back: what is ahead of it counts as of now.
      return logOf(
        entriesOf(state, policy).map(({ atMs, units }) => ({ atMs: Math.min(atMs, nowMs), units })),
        policy,
        nowMs,
      )
    }
    return withoutBefore(nowMs - policy.windowMs, state, policy, nowMs)
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
    for (let at = 1; at < lengthOf(state); at += entryWidth(state, policy)) {
      const { atMs, units } = entryAt(at, state, policy)
      used -= units
      if (used + cost <= ceiling) return atMs + policy.windowMs + 1 - nowMs
    }
    return Number.POSITIVE_INFINITY
  },

  resetAfterMs({ startMs, current }, { windowMs }, nowMs) {
    return current === 0 ? 0 : startMs + windowMs + 1 - nowMs
  },

  emptyAtMs({ startMs, current }, { windowMs }) {
    return current === 0 ? startMs : startMs + windowMs + 1
  },

  withUnits(state, policy, units, nowMs) {
    if (units === 0) return state
    const { startMs, current, parts = "" } = state
    // Most are of another millisecond than the latest, and need no more digits than those before.
    if (parts !== "" && startMs < nowMs && units < 64 ** parseDigits(parts, 0, 1)) {
      const entry = entryText({ atMs: nowMs, units }, timeDigits(policy), parseDigits(parts, 0, 1))
      return { startMs: nowMs, current: current + units, previous: 0, parts: flat(parts + entry) }
    }
    return logOf([...entriesOf(state, policy), { atMs: nowMs, units }], policy, nowMs)
  },

  withRejected(state, policy, units, nowMs) {
    // The newest units stay, and the oldest go: however often somebody knocks, the log is no longer than before.
    const most = Math.max(ceilingOf(policy), state.current)
    const entries = [...entriesOf(state, policy), { atMs: nowMs, units }]
    let surplus = state.current + units - most
    const kept = entries.map(({ atMs, units: counted }) => {
      const dropped = Math.min(Math.max(0, surplus), counted)
      surplus -= dropped
      return { atMs, units: counted - dropped }
    })
    return logOf(kept, policy, nowMs)
  },

  withoutUnits(state, policy, units, after, nowMs) {
    const entries = entriesOf(state, policy)
    // What is charged after the clock went back counts as of now, like all that was ahead of it.
    const takenMs = units < 0 ? Math.min(after.startMs, nowMs) : after.startMs
    const found = entries.findIndex(({ atMs }) => atMs >= takenMs)
    const index = found === -1 ? entries.length : found
    const entry = entries[index]
    if (entry?.atMs === takenMs) {
      entries[index] = { atMs: takenMs, units: Math.max(0, entry.units - units) }
    } else if (units < 0 && takenMs >= nowMs - policy.windowMs) {
      // No units were taken, or all given back: that has left no entry to charge them to.
      entries.splice(index, 0, { atMs: takenMs, units: -units })
    } else return state
    return logOf(entries, policy, nowMs)
  },
}

/** How many digits tell an instant of the window from every other, both ends included. */
export function timeDigits({ windowMs }: Policy): number {
  return digitsFor(windowMs)
}

function lengthOf({ parts = "" }: CounterState): number {
  return parts.length
}

/** Characters of an entry. */
function entryWidth({ parts = "" }: CounterState, policy: Policy): number {
  return timeDigits(policy) + parseDigits(parts, 0, 1)
}

/** The entry whose first character is there. */
function entryAt(at: number, { startMs, parts = "" }: CounterState, policy: Policy): Entry {
  const timeWidth = timeDigits(policy)
  // Its age is less than a turn of the digits.
  const ageMs = (startMs - parseDigits(parts, at, timeWidth)) % 64 ** timeWidth
  return { atMs: startMs - ageMs, units: parseDigits(parts, at + timeWidth, parseDigits(parts, 0, 1)) }
}

function entriesOf(state: CounterState, policy: Policy): Entry[] {
  const entries: Entry[] = []
  for (let at = 1; at < lengthOf(state); at += entryWidth(state, policy))
    entries.push(entryAt(at, state, policy))
  return entries
}

/** The log without what was before an instant; it keeps the number of digits while there is anything left. */
function withoutBefore(oldestMs: number, state: CounterState, policy: Policy, nowMs: number): CounterState {
  const { startMs, parts = "" } = state
  let { current } = state
  let at = 1
  for (; at < parts.length; at += entryWidth(state, policy)) {
    const { atMs, units } = entryAt(at, state, policy)
    if (atMs >= oldestMs) break
    current -= units
  }
  if (at >= parts.length) return { startMs: nowMs, current: 0, previous: 0, parts: "" }
  return at === 1
    ? state
    : { startMs, current, previous: 0, parts: flat(parts.slice(0, 1) + parts.slice(at)) }
}

function entryText({ atMs, units }: Entry, timeWidth: number, unitsWidth: number): string {
  return digits(atMs % 64 ** timeWidth, timeWidth) + digits(units, unitsWidth)
}

/** Entries in the order of their time; those of one instant become one, and empty ones none. */
function logOf(entries: readonly Entry[], policy: Policy, nowMs: number): CounterState {
  const merged: Entry[] = []
  let current = 0
  for (const entry of entries) {
    if (entry.units === 0) continue
    current += entry.units
    const last = merged.at(-1)
    if (last?.atMs === entry.atMs) merged[merged.length - 1] = { ...last, units: last.units + entry.units }
    else merged.push(entry)
  }
  const latest = merged.at(-1)
  if (latest === undefined) return { startMs: nowMs, current: 0, previous: 0, parts: "" }
  const timeWidth = timeDigits(policy)
  const unitsWidth = digitsFor(Math.max(...merged.map(({ units }) => units)))
  let parts = digits(unitsWidth, 1)
  for (const entry of merged) parts += entryText(entry, timeWidth, unitsWidth)
  return { startMs: latest.atMs, current, previous: 0, parts: flat(parts) }
}
