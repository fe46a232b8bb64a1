import { durationMs } from "./duration.ts"

/** The information in a response about one quota. */
export interface Reading {
  /** The remaining units. A call counts as one unit. */
  readonly remaining: number
  /** The milliseconds that these units must last, counted from the response. */
  readonly forMs: number
  /** The units of a full window. Undefined if the response does not contain them. */
  readonly quota?: number | undefined
  /** True if the units are those of more than a day. Absent otherwise. */
  readonly isLong?: true | undefined
}

/**
 * Reads the fields of one dialect. Returns one reading for each quota, or none if the response lacks the fields or
 * they make no sense. `nowMs` is the server's time in epoch milliseconds.
 */
export type Dialect = (headers: Headers, nowMs: number) => readonly Reading[]

export const DAY_MS = 86_400_000

/** The longest time that is accepted in a reading or a refusal: a leap year, and a day for changes of its time zone. */
const LONGEST_MS = 367 * DAY_MS

/** A calendar day has 25 hours if clocks are set back. */
const LONGEST_DAY_MS = 90_000_000

/** The time that the units must last if a response does not contain this time, or contains it in an unknown form. */
const UNKNOWN_MS = 1_000

/**
 * A number of seconds below this number is a duration, and any other number is an instant. The boundary is an instant
 * in 2001, or a duration of 11,574 days.
 */
const LEAST_EPOCH_SECONDS = 1e9
/**
 * Epoch seconds are less than this number of milliseconds until the year 33658. A larger number is in milliseconds,
 * microseconds or nanoseconds.
 */
const LARGEST_EPOCH_MS = 1e15
/** Replaces larger numbers, so that no product of numbers is infinite. */
const LARGEST = 1e30

/**
 * Returns a reading in an array; an empty array if the units are not known. Negative units count as 0, because the
 * quota is overdrawn. `windowMs` is the length of a full window, and 0 if it is unknown.
 */
export function readingsOf(remaining: number, forMs: number, quota = 0, windowMs = 0): readonly Reading[] {
  if (Number.isNaN(remaining)) return []
  const lastMs = inRange(Number.isNaN(forMs) ? UNKNOWN_MS : forMs)
  return [
    {
      remaining: Math.max(remaining, 0),
      forMs: lastMs,
      quota: quota > 0 ? quota : undefined,
      isLong: Math.max(lastMs, inRange(windowMs)) > LONGEST_DAY_MS || undefined,
    },
  ]
}

/**
 * Returns a wait of at least 0. Returns 0 for NaN, and a day for more than `LONGEST_MS`, because a server that sends a
 * longer time is mistaken or lies.
 */
export function inRange(ms: number): number {
  if (!(ms > 0)) return 0
  return ms > LONGEST_MS ? DAY_MS : ms
}

/**
 * Returns the values of a header without their parameters (";w=60"). There are several values if several servers have
 * added the header. The comma after the day in a date does not separate values.
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
 * Returns the milliseconds from now to a time; negative if the time has passed, NaN if the string is not a time. A
 * number is in seconds from now, or in seconds, milliseconds, microseconds or nanoseconds of the epoch. Its size
 * determines the unit.
 */
export function msUntil(text = "", nowMs: number): number {
  const seconds = numberOf(text)
  if (seconds < LEAST_EPOCH_SECONDS) return seconds * 1000
  let instantMs = Number.isNaN(seconds) ? dateMs(text) : seconds * 1000
  while (instantMs >= LARGEST_EPOCH_MS) instantMs /= 1000
  return Number.isNaN(instantMs) ? durationMs(text) : instantMs - nowMs
}

/**
 * Returns the epoch milliseconds of an HTTP date in any of its forms (RFC 9110, section 5.6.7), or of a date in RFC
 * 3339 or a similar format; NaN for anything else. A date without a zone is in UTC, but `Date.parse` would assume the
 * local zone.
 */
export function dateMs(text = ""): number {
  if (!/\d:\d\d/.test(text)) return Number.NaN
  const zone = /[a-z]$|[-+]\d\d(:?\d\d)?$/i.test(text) ? "" : /^\d+-/.test(text) ? "Z" : " GMT"
  return Date.parse(text + zone)
}
