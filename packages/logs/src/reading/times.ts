/**
 * Times before 1973 are invalid, and so are times after 2106, which the core cannot count. Between them, seconds and
 * milliseconds cannot be confused.
 */
const LOWEST_MS = 1e11
const HIGHEST_MS = 0xffff_ffff * 1_000
const DAY_MS = 86_400_000

const MINUTE_MS = 60_000
/** Length of "10/Oct/2025:13:55:36 +0000", as in common logs. */
export const CLF_LENGTH = 26
/** Length of "10/Oct/2025:13:55", which is the part that stays the same for a minute. */
const CLF_MINUTE_LENGTH = 17

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

/**
 * A function that reads the time at a position of a string, in epoch milliseconds. Returns NaN if there is no valid
 * time at this position.
 */
export type TimeReader = (text: string, at: number) => number

/**
 * Returns a reader of times such as "10/Oct/2025:13:55:36 +0000" (`$time_local` of nginx, `%t` of Apache). The reader
 * caches the latest time and the latest minute, because neighboring lines often share these.
 */
export function clfTimeReader(): TimeReader {
  let last = "none"
  let lastMs = 0
  let minute = "none"
  let zone = ""
  let minuteMs = 0
  return (text, at) => {
    if (text.startsWith(last, at)) return lastMs
    if (!text.startsWith(minute, at) || !text.startsWith(zone, at + 20)) {
      const ms = clfMinute(text, at)
      if (Number.isNaN(ms)) return ms
      // Copy the text, because a substring would keep the whole line in memory.
      minute = copyOf(text.slice(at, at + CLF_MINUTE_LENGTH))
      zone = copyOf(text.slice(at + 20, at + CLF_LENGTH))
      minuteMs = ms
    }
    const seconds = twoDigits(text, at + 18)
    // Second 60 is a leap second. As in Unix time, it counts as the first second of the next minute.
    if (text.charCodeAt(at + 17) !== 58 || !(seconds <= 60)) return Number.NaN
    last = copyOf(text.slice(at, at + CLF_LENGTH))
    lastMs = minuteMs + seconds * 1_000
    return lastMs
  }
}

/** Reads the minute of "10/Oct/2025:13:55:36 +0000" in epoch milliseconds. Returns NaN if the minute is invalid. */
function clfMinute(text: string, at: number): number {
  const month = MONTHS.indexOf(text.slice(at + 3, at + 6))
  const hasMarks =
    text[at + 2] === "/" && text[at + 6] === "/" && text[at + 11] === ":" && text[at + 14] === ":"
  if (!hasMarks || month === -1 || text[at + 20] !== " ") return Number.NaN
  const minute = utcMinute(digits(text, at + 7, 4), month, twoDigits(text, at), text, at + 12)
  return minute - offsetMs(text, at + 21, "")
}

/** A time with a date, a time of day and an offset, as in RFC 3339, but with an optional colon in the offset. */
const ISO = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,](\d{1,9}))?(?:Z|[+-]\d\d:?\d\d)$/

/**
 * Returns the epoch milliseconds of an ISO time such as "2025-10-10T13:55:36.123Z". Truncates the time to
 * milliseconds. Returns NaN for any other string, and for a time without an offset, because its time zone is unknown.
 */
export function isoTime(text: string): number {
  const match = text.length <= 40 ? ISO.exec(text) : null
  if (match === null) return Number.NaN
  const seconds = twoDigits(text, 17)
  const minute = utcMinute(digits(text, 0, 4), twoDigits(text, 5) - 1, twoDigits(text, 8), text, 11)
  const offset = text.endsWith("Z") ? 0 : offsetMs(text, text.search(/[+-]\d\d:?\d\d$/), ":")
  const fraction = Number((match[1] ?? "").slice(0, 3).padEnd(3, "0"))
  return seconds <= 60 ? minute - offset + seconds * 1_000 + fraction : Number.NaN
}

/**
 * Returns the epoch milliseconds of a number of seconds or milliseconds. Returns NaN if the number fits neither unit.
 */
export function epochTime(value: number): number {
  // A sum such as 1760104536.123 * 1000 is not exact, so round to microseconds before truncating to milliseconds.
  const ms = value < LOWEST_MS ? Math.floor(Math.round(value * 1e6) / 1e3) : Math.floor(value)
  return ms >= LOWEST_MS && ms < HIGHEST_MS ? ms : Number.NaN
}

/**
 * Returns when a request arrived, computed from the time of its end and `durationMs`. Returns NaN if the duration is
 * negative or longer than a day.
 */
export function arrivalTime(endMs: number, durationMs: number): number {
  return durationMs >= 0 && durationMs <= DAY_MS ? endMs - durationMs : Number.NaN
}

/**
 * True if a request can have arrived at this time. False for times more than a day in the future, because such a line
 * would make all later lines late.
 */
export function isArrival(atMs: number, nowMs: number): boolean {
  return atMs >= LOWEST_MS && atMs < HIGHEST_MS && atMs < nowMs + DAY_MS
}

/** Returns the epoch milliseconds of an ISO time, or of seconds or milliseconds as digits. Returns NaN otherwise. */
export function textTime(text: string): number {
  return /^\d{9,14}(?:\.\d{1,9})?$/.test(text) ? epochTime(Number(text)) : isoTime(text)
}

/** Returns the epoch milliseconds of a JSON value. Returns NaN if the value is not a time. */
export function valueTime(value: unknown): number {
  if (typeof value === "number") return epochTime(value)
  return typeof value === "string" ? textTime(value) : Number.NaN
}

/** Returns a copy of `text`. Unlike a substring, the copy does not keep the whole original string in memory. */
function copyOf(text: string): string {
  return Buffer.from(text, "utf8").toString("utf8")
}

function utcMinute(year: number, month: number, day: number, text: string, at: number): number {
  const hours = twoDigits(text, at)
  const minutes = twoDigits(text, at + 3)
  const ms = Date.UTC(year, month, day)
  // Check the day, because `Date.UTC` accepts February 30.
  const exists = new Date(ms).getUTCDate() === day && new Date(ms).getUTCMonth() === month
  const isTime = hours <= 23 && minutes <= 59
  const isValid = exists && isTime && ms >= LOWEST_MS && ms < HIGHEST_MS
  return isValid ? ms + (hours * 60 + minutes) * MINUTE_MS : Number.NaN
}

/**
 * Returns the offset in "+0530", or in "+05:30" if `mark` is ":", in milliseconds. Returns NaN if the offset is
 * invalid.
 */
function offsetMs(text: string, at: number, mark: string): number {
  const sign = text[at] === "-" ? -1 : text[at] === "+" ? 1 : Number.NaN
  const hours = twoDigits(text, at + 1)
  const minutes = twoDigits(text, at + 3 + (mark !== "" && text[at + 3] === mark ? 1 : 0))
  return hours <= 14 && minutes <= 59 ? sign * (hours * 60 + minutes) * MINUTE_MS : Number.NaN
}

function digits(text: string, at: number, count: number): number {
  let value = 0
  for (let index = at; index < at + count; index++) value = value * 10 + digit(text, index)
  return value
}

function twoDigits(text: string, at: number): number {
  return digit(text, at) * 10 + digit(text, at + 1)
}

function digit(text: string, at: number): number {
  const value = text.charCodeAt(at) - 48
  return value >= 0 && value <= 9 ? value : Number.NaN
}
