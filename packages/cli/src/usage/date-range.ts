import { UsageError } from "../usage-error.ts"

/** A day such as "2024-01-31", or an instant in epoch milliseconds. */
type DateBound = string | number

/** Selects whole calendar periods that overlap a range. */
export interface DateRange {
  /** True if the period, whose rule counts in the time zone, overlaps the range. */
  overlaps(period: { readonly startMs: number; readonly endMs: number }, timeZone: string): boolean
}

/** Returns the range from the beginning of `from` to the beginning of `to`. Throws UsageError. */
export function dateRange(from: string | undefined, to: string | undefined): DateRange {
  const first = boundOf("--from", from)
  const end = boundOf("--to", to)
  if (first !== undefined && end !== undefined && typeof first === typeof end && first >= end)
    throw new UsageError(
      `--to ${to} is not later than --from ${from}: give a later one, which is not included`,
    )
  return {
    overlaps: ({ startMs, endMs }, timeZone) =>
      (first === undefined || first <= as(first, endMs - 1, timeZone)) &&
      (end === undefined || end > as(end, startMs, timeZone)),
  }
}

/** Returns a time as the bound is given, so that both can be compared. */
function as(bound: DateBound, ms: number, timeZone: string): DateBound {
  return typeof bound === "number" ? ms : dayOf(ms, timeZone)
}

function boundOf(option: string, text: string | undefined): DateBound | undefined {
  if (text === undefined) return undefined
  if (isDay(text)) return text
  const ms = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d)$/.test(text)
    ? Date.parse(text)
    : Number.NaN
  if (!Number.isNaN(ms)) return ms
  throw new UsageError(
    `${option} ${JSON.stringify(text)} is not a date: give a day such as 2024-01-31, or an instant such as 2024-01-31T12:00Z`,
  )
}

function isDay(text: string): boolean {
  const ms = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(`${text}T00:00Z`) : Number.NaN
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text)
}

const formats = new Map<string, Intl.DateTimeFormat>()

/** Returns the date and time that clocks of the zone show, such as "2024-01-31 00:00:00". */
function localTime(ms: number, timeZone: string): string {
  let format = formats.get(timeZone)
  if (format === undefined) {
    // Swedish dates are written as in ISO 8601.
    format = new Intl.DateTimeFormat("sv-SE", {
      ...{ timeZone, calendar: "gregory", numberingSystem: "latn", hourCycle: "h23" },
      ...{
        year: "numeric",
        month: "2-digit",
        day: "2-digit",
        hour: "2-digit",
        minute: "2-digit",
        second: "2-digit",
      },
    })
    formats.set(timeZone, format)
  }
  return format.format(ms)
}

function dayOf(ms: number, timeZone: string): string {
  return localTime(ms, timeZone).slice(0, 10)
}

/** Returns the boundary of a period for people: the day in the time zone, or the instant if the day begins later. */
export function boundaryText(ms: number, timeZone: string): string {
  const text = localTime(ms, timeZone)
  return text.endsWith(" 00:00:00") && ms % 1_000 === 0
    ? text.slice(0, 10)
    : new Date(ms).toISOString().replace(/:00\.000Z$/, "Z")
}
