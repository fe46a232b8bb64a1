import { durationMs } from "./duration.ts"

/** The information of a response about one quota. */
export interface Reading {
  /** The units that are left. A call is counted as one unit. */
  readonly remaining: number
  /** The milliseconds that they must last, from the response on. */
  readonly forMs: number
  /** The units of a full window. Undefined if the response does not contain them. */
  readonly quota?: number | undefined
}

/**
 * Reads the fields of one dialect. Returns one reading for each quota, or none if the response does not have the fields
 * or they make no sense. `nowMs` is the server's time, epoch milliseconds.
 */
export type Dialect = (headers: Headers, nowMs: number) => readonly Reading[]

/** The longest time that a reading or a refusal can name. A server that names a longer one is mistaken or lies. */
export const LONGEST_MS = 86_400_000

/** How long the units last if a response does not contain it, or contains it in an unknown form. */
const UNKNOWN_MS = 1_000

/** A number of seconds below this one is a duration, and any other one an instant: 2001, or 11,574 days. */
const LEAST_EPOCH_SECONDS = 1e9
/** Epoch seconds are below this many milliseconds, until the year 33658. A larger number counts smaller units. */
const LARGEST_EPOCH_MS = 1e15
/** Stands in for larger numbers, so that no product of them is infinite. */
const LARGEST = 1e30

/** Returns a reading in an array; an empty array if the units are not known. Negative units are overdrawn: none are left. */
export function readingsOf(remaining: number, forMs: number, quota = 0): readonly Reading[] {
  if (Number.isNaN(remaining)) return []
  return [
    {
      remaining: Math.max(remaining, 0),
      forMs: inRange(Number.isNaN(forMs) ? UNKNOWN_MS : forMs),
      quota: quota > 0 ? quota : undefined,
    },
  ]
}

/** Returns a wait that is neither negative nor longer than the longest one: 0 for NaN. */
export function inRange(ms: number): number {
  return ms > 0 ? Math.min(ms, LONGEST_MS) : 0
}

/**
 * Returns the values of a header without their parameters (";w=60"). There are several if several servers have added
 * theirs. The comma after the day in a date does not separate values.
 */
export function valuesIn(headers: Headers, name: string): readonly string[] {
  const values = headers.get(name)?.match(/ *(?:[a-z]+,)?[^,]+/gi) ?? []
  return values.map((value) => value.replace(/;.*/, "").trim())
}

/** Returns the first number of a header; NaN if there is none. */
export function numberIn(headers: Headers, name: string): number {
  return numberOf(valuesIn(headers, name)[0])
}

/** Returns a string as a number, in any spelling of a decimal number; NaN for anything else. */
export function numberOf(text = ""): number {
  const number = /^[-+.\de]+$/i.test(text) ? Number(text) : Number.NaN
  return Math.max(Math.min(number, LARGEST), -LARGEST)
}

/**
 * Returns the milliseconds from now to a time; negative if it is over, NaN if the string is not a time. A number is in
 * seconds from now or in seconds, milliseconds, microseconds or nanoseconds of the epoch, which differ by their size.
 */
export function msUntil(text = "", nowMs: number): number {
  const seconds = numberOf(text)
  if (seconds < LEAST_EPOCH_SECONDS) return seconds * 1000
  let instantMs = Number.isNaN(seconds) ? dateMs(text) : seconds * 1000
  while (instantMs >= LARGEST_EPOCH_MS) instantMs /= 1000
  return Number.isNaN(instantMs) ? durationMs(text) : instantMs - nowMs
}

/**
 * Returns the epoch milliseconds of an HTTP date in each of its forms (RFC 9110, section 5.6.7), or of a date of RFC 3339
 * and its relatives; NaN for anything else. A date without a zone is in UTC, and `Date.parse` would take the local zone.
 */
export function dateMs(text = ""): number {
  if (!/\d:\d\d/.test(text)) return Number.NaN
  const zone = /[a-z]$|[-+]\d\d(:?\d\d)?$/i.test(text) ? "" : /^\d+-/.test(text) ? "Z" : " GMT"
  return Date.parse(text + zone)
}
