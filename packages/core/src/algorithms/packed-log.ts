import type { Policy } from "../ground/policy.ts"
import type { CounterState } from "./algorithm.ts"
import { digits, digitsFor, flat, parseDigits } from "./packed-counts.ts"

/**
 * The entries of a sliding log, packed into a string with the oldest entry first and at most one entry per
 * millisecond. The first digit is the number of digits of the units. Each entry consists of the last few digits of
 * its time in epoch milliseconds, and of its units.
 *
 * All entries have the same length, so an entry is found, changed or removed without reading the other entries.
 * Except for copies of the string, a request takes as long with a thousand entries as with ten. A place is an index
 * of the string, either of the first character of an entry or of the end.
 */
export interface PackedLog {
  readonly text: string
  /**
   * A time at or after the times of all entries. Every entry is less than `64 ** timeWidth` ms older than this time.
   */
  readonly startMs: number
  readonly timeWidth: number
  /** The number of digits of the units, or 0 if the log is empty. */
  readonly unitsWidth: number
  /** The place after the last entry. */
  readonly end: number
}

/** The place of the oldest entry. */
export const FIRST = 1

/** Returns the entries of a state. */
export function logOf({ startMs, parts: text = "" }: CounterState, policy: Policy): PackedLog {
  const unitsWidth = parseDigits(text, 0, 1)
  // This number of digits distinguishes all instants of the window, including both ends.
  const timeWidth = digitsFor(policy.windowMs)
  return { text, startMs, timeWidth, unitsWidth, end: Math.max(FIRST, text.length) }
}

/** Returns the number of characters of an entry. */
export function entryWidth({ timeWidth, unitsWidth }: PackedLog): number {
  return timeWidth + unitsWidth
}

/** Returns the time of the entry at a place, in epoch milliseconds. */
export function timeAt({ text, startMs, timeWidth }: PackedLog, place: number): number {
  // The entry's age is less than 64 ** timeWidth, so the digits determine the time.
  return startMs - ((startMs - parseDigits(text, place, timeWidth)) % 64 ** timeWidth)
}

/** Returns the units of the entry at a place. */
export function unitsAt({ text, timeWidth, unitsWidth }: PackedLog, place: number): number {
  return parseDigits(text, place + timeWidth, unitsWidth)
}

/** Returns the place of the first entry at or after an instant, or the end if all entries are earlier. */
export function placeOf(log: PackedLog, instantMs: number): number {
  const width = entryWidth(log)
  let low = 0
  let high = (log.end - FIRST) / width
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if (timeAt(log, FIRST + middle * width) < instantMs) low = middle + 1
    else high = middle
  }
  return FIRST + low * width
}

/** Returns the units of all entries from `from` up to, but not including, `to`. */
export function unitsBetween(log: PackedLog, from: number, to: number): number {
  let units = 0
  for (let place = from; place < to; place += entryWidth(log)) units += unitsAt(log, place)
  return units
}

/**
 * Returns the string after one entry has replaced the entries between two places. If `units` is 0, only removes these
 * entries. The number of digits of the units never decreases while the log contains entries, and grows if the new
 * entry needs more.
 */
export function replaced(
  { text, timeWidth, unitsWidth, end }: PackedLog,
  from: number,
  to: number,
  atMs: number,
  units: number,
): string {
  if (units === 0 && from === FIRST && to === end) return ""
  const width = Math.max(unitsWidth, digitsFor(units))
  const entry = units === 0 ? "" : digits(atMs % 64 ** timeWidth, timeWidth) + digits(units, width)
  const wider = (entries: string) =>
    width === unitsWidth ? entries : widened(entries, timeWidth, unitsWidth, width)
  return flat(digits(width, 1) + wider(text.slice(FIRST, from)) + entry + wider(text.slice(to)))
}

/** Widens the units of each entry from `unitsWidth` to `width` digits. */
function widened(entries: string, timeWidth: number, unitsWidth: number, width: number): string {
  let text = ""
  for (let at = 0; at < entries.length; at += timeWidth + unitsWidth) {
    const unitsFrom = at + timeWidth
    text += entries.slice(at, unitsFrom) + "0".repeat(width - unitsWidth)
    text += entries.slice(unitsFrom, unitsFrom + unitsWidth)
  }
  return text
}
