import type { Policy } from "../ground/policy.ts"
import type { CounterState } from "./algorithm.ts"
import { digits, digitsFor, flat, parseDigits } from "./packed-counts.ts"

/**
 * The entries of a sliding log, packed into a text, the oldest first and no two of one instant: a digit that says how many
 * digits the units have, then for each entry its time, as the last few digits of its epoch milliseconds, and its units.
 *
 * All entries are equally long. So one is found, changed or cut off without a look at the others, and a request costs as
 * much with a thousand of them as with ten, but for the copies of the text. A place is an index of the text: the first
 * character of an entry, or the end.
 */
export interface PackedLog {
  readonly text: string
  /** No entry is later, and none is earlier by a turn of its digits or more. */
  readonly startMs: number
  readonly timeWidth: number
  /** 0 where there are no entries. */
  readonly unitsWidth: number
  /** The place after the last entry. */
  readonly end: number
}

/** The place of the oldest entry. */
export const FIRST = 1

/** How many digits tell an instant of the window from every other, both ends included. */
export function timeDigits({ windowMs }: Policy): number {
  return digitsFor(windowMs)
}

/** The entries of a state. */
export function logOf({ startMs, parts: text = "" }: CounterState, policy: Policy): PackedLog {
  const unitsWidth = parseDigits(text, 0, 1)
  return { text, startMs, timeWidth: timeDigits(policy), unitsWidth, end: Math.max(FIRST, text.length) }
}

/** Characters of an entry. */
export function entryWidth({ timeWidth, unitsWidth }: PackedLog): number {
  return timeWidth + unitsWidth
}

/** How many entries there are. */
export function countOf(log: PackedLog): number {
  return (log.end - FIRST) / entryWidth(log)
}

/** The time of the entry at a place, in epoch milliseconds. */
export function timeAt({ text, startMs, timeWidth }: PackedLog, place: number): number {
  // Its age is less than a turn of the digits.
  return startMs - ((startMs - parseDigits(text, place, timeWidth)) % 64 ** timeWidth)
}

/** The units of the entry at a place. */
export function unitsAt({ text, timeWidth, unitsWidth }: PackedLog, place: number): number {
  return parseDigits(text, place + timeWidth, unitsWidth)
}

/** The place of the first entry that is not before an instant; the end where all are. */
export function placeOf(log: PackedLog, instantMs: number): number {
  const width = entryWidth(log)
  let low = 0
  let high = countOf(log)
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if (timeAt(log, FIRST + middle * width) < instantMs) low = middle + 1
    else high = middle
  }
  return FIRST + low * width
}

/** The units of all entries from one place up to another. */
export function unitsBetween(log: PackedLog, from: number, to: number): number {
  let units = 0
  for (let place = from; place < to; place += entryWidth(log)) units += unitsAt(log, place)
  return units
}

/**
 * The text with one entry, or none where it has no units, in place of those from one place up to another. Units keep
 * their number of digits as long as there are entries, or get more where the new ones need them.
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

/** Entries whose units have more digits. */
function widened(entries: string, timeWidth: number, unitsWidth: number, width: number): string {
  let text = ""
  for (let at = 0; at < entries.length; at += timeWidth + unitsWidth) {
    const unitsFrom = at + timeWidth
    text += entries.slice(at, unitsFrom) + "0".repeat(width - unitsWidth)
    text += entries.slice(unitsFrom, unitsFrom + unitsWidth)
  }
  return text
}
