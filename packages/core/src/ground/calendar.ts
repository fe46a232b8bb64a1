/** A calendar period. Weeks have seven days, and begin on the anchor's day. */
export type CalendarPeriod = "day" | "week" | "month" | "year"

/** A number with which `anchorOf` counts the months of a year: 131 is 31 January. */
const MONTH = 100
const DAY_MS = 86_400_000
/** Periods around the current one whose boundaries are computed. */
const AROUND = [-2, -1, 0, 1, 2, 3]

/** A date without a time. Months are 1 to 12, and days are 1 to 31. */
interface CalendarDate {
  readonly year: number
  readonly month: number
  readonly day: number
}

/**
 * Returns the boundaries of the periods around a time, in ascending epoch milliseconds: the beginnings of the previous,
 * the current and the next period, and the end of the next period.
 *
 * A period begins at the first moment of its first day in the time zone. `anchor` is that day: 1 (Monday) to 7 of a
 * week, 1 to 31 of a month, or month times 100 plus day of a year. Days are not anchored. In a month that is too short,
 * its last day applies. If clocks skip the day's midnight, the period begins when they have been set forward. If they
 * skip the whole day, the period that would begin then begins with the next day. If midnight occurs twice, the first
 * one counts.
 *
 * `timeZone` is a name that {@link isTimeZone} accepts.
 */
export function periodsAround(
  per: CalendarPeriod,
  anchor: number,
  timeZone: string,
  nowMs: number,
): readonly number[] {
  const clock = clockOf(timeZone)
  const today = dateOf(clock(nowMs))
  const starts = AROUND.map((steps) => startOfDay(clock, firstDay(per, anchor, today, steps)))
  // If a day is skipped, two periods would begin at the same time.
  const distinct = starts.filter((startMs, at) => startMs !== starts[at + 1])
  // If midnight occurs twice, the local date of the time between may be before the period's first day.
  const next = distinct.findIndex((startMs) => startMs > nowMs)
  return distinct.slice(next - 2, next + 2)
}

/** Returns the first day of a period, as UTC midnight: of the current one, or of the one so many steps later. */
function firstDay(
  per: CalendarPeriod,
  anchor: number,
  { year, month, day }: CalendarDate,
  steps: number,
): number {
  const todayMs = Date.UTC(year, month - 1, day)
  switch (per) {
    case "day":
      return todayMs + steps * DAY_MS
    case "week": {
      const weekday = new Date(todayMs).getUTCDay() || 7
      return todayMs - ((weekday - anchor + 7) % 7) * DAY_MS + steps * 7 * DAY_MS
    }
    case "month": {
      const isBefore = day < dayWithin(year, month, anchor)
      const index = 12 * year + (month - 1) + steps - (isBefore ? 1 : 0)
      return dayOf(Math.floor(index / 12), (index % 12) + 1, anchor)
    }
    case "year": {
      const [first, firstDayOf] = [Math.floor(anchor / MONTH), anchor % MONTH]
      const isBefore = todayMs < dayOf(year, first, firstDayOf)
      return dayOf(year + steps - (isBefore ? 1 : 0), first, firstDayOf)
    }
  }
}

/** Returns the day, or the last day of a month that has fewer days. */
function dayWithin(year: number, month: number, day: number): number {
  return Math.min(day, new Date(Date.UTC(year, month, 0)).getUTCDate())
}

function dayOf(year: number, month: number, day: number): number {
  return Date.UTC(year, month - 1, dayWithin(year, month, day))
}

/** Returns the time that clocks of a zone show at a moment, as if they showed UTC. Both are epoch milliseconds. */
type ZoneClock = (ms: number) => number

function dateOf(shownMs: number): CalendarDate {
  const date = new Date(shownMs)
  return { year: date.getUTCFullYear(), month: date.getUTCMonth() + 1, day: date.getUTCDate() }
}

/** Returns the first moment at which clocks show a time of the day that begins at `midnightMs`, if they showed UTC. */
function startOfDay(clock: ZoneClock, midnightMs: number): number {
  // The offsets from UTC before and after a change that may be near midnight.
  const offsets = [-DAY_MS, DAY_MS].map((apart) => clock(midnightMs + apart) - midnightMs - apart)
  const moments = offsets.map((offset) => midnightMs - offset)
  const shown = moments.filter((ms) => clock(ms) === midnightMs)
  if (shown.length > 0) return Math.min(...shown)
  // Clocks never show midnight. Find the moment at which they are set forward.
  let [before, after] = [Math.min(...moments), Math.max(...moments)]
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2)
    if (clock(middle) < midnightMs) before = middle
    else after = middle
  }
  return after
}

/** Formats of the zones that were used, because creating one takes 50 µs. There are about 600 names of zones. */
const formats = new Map<string, Intl.DateTimeFormat>()

function clockOf(timeZone: string): ZoneClock {
  if (timeZone === "UTC") return (ms) => ms
  let format = formats.get(timeZone)
  if (format === undefined) {
    format = new Intl.DateTimeFormat("en-US", {
      ...{ timeZone, calendar: "gregory", numberingSystem: "latn", hourCycle: "h23" },
      ...{ year: "numeric", month: "numeric", day: "numeric" },
      ...{ hour: "numeric", minute: "numeric", second: "numeric" },
    })
    formats.set(timeZone, format)
  }
  const { formatToParts } = format
  return (ms) => {
    const part: Partial<Record<string, number>> = {}
    for (const { type, value } of formatToParts.call(format, ms)) part[type] = Number(value)
    const { year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0 } = part
    return Date.UTC(year, month - 1, day, hour, minute, second) + (((ms % 1_000) + 1_000) % 1_000)
  }
}

/** The lengths of the longest periods in milliseconds, in a time zone whose clocks are never changed. */
export const LONGEST_PERIOD_MS: Readonly<Record<CalendarPeriod, number>> = {
  day: DAY_MS,
  week: 7 * DAY_MS,
  month: 31 * DAY_MS,
  year: 366 * DAY_MS,
}
/** The anchor of a rule without `anchor`: Monday, the first of the month, or 1 January. */
export const DEFAULT_ANCHOR: Readonly<Record<CalendarPeriod, number>> = {
  day: 0,
  week: 1,
  month: 1,
  year: MONTH + 1,
}

/** True if the value is the name of a time zone that this version of Node knows, such as "Europe/Berlin" or "UTC". */
export function isTimeZone(value: unknown): value is string {
  if (typeof value !== "string") return false
  try {
    // Offsets such as "+01:00" are no names.
    return /^[A-Z]/i.test(new Intl.DateTimeFormat("en-US", { timeZone: value }).resolvedOptions().timeZone)
  } catch {
    return false
  }
}

/** Days of the longest months. February has 29, so that an anchor may be the last day of a leap year's February. */
const LONGEST = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
const DATE = /^(\d{4}-)?(\d{2})-(\d{2})(?:T.*)?$/

/**
 * Returns the number of an anchor for `periodsAround`. An anchor is a whole number (1 is Monday), or a date such as
 * "2026-01-31" or a `Date`, read as UTC, of which the day counts. For a year, it may be a date without its year, such as
 * "01-31". Returns undefined if it is not an anchor of such periods.
 */
export function anchorOf(per: CalendarPeriod, value: unknown): number | undefined {
  if (per === "day") return undefined
  // A database may return the day as a string.
  const number = typeof value === "string" && /^\d{1,2}$/.test(value) ? Number(value) : value
  if (typeof number === "number") {
    const isDay = Number.isInteger(number) && number >= 1 && number <= (per === "week" ? 7 : 31)
    return isDay && per !== "year" ? number : undefined
  }
  const text = value instanceof Date && !Number.isNaN(value.getTime()) ? value.toISOString() : value
  const [, year, monthText, dayText] = typeof text === "string" ? (DATE.exec(text) ?? []) : []
  const [month, day] = [Number(monthText), Number(dayText)]
  if (!(day >= 1 && day <= (LONGEST[month - 1] ?? 0))) return undefined
  if (per === "year") return month * MONTH + day
  if (year === undefined) return undefined
  return per === "month" ? day : new Date(String(text).slice(0, 10)).getUTCDay() || 7
}
