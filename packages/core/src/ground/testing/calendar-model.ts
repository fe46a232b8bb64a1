import { Temporal } from "temporal-polyfill"
import type { CalendarPeriod } from "../calendar.ts"

/** The years whose boundaries are tested. */
const [FIRST_MS, END_MS] = [Date.UTC(2000, 0, 1), Date.UTC(2041, 0, 1)]
const YEAR_MS = 366 * 86_400_000

/** All names of time zones, including old names and links that Node accepts. */
export const ZONES: readonly string[] = [
  ...Intl.supportedValuesOf("timeZone"),
  ...["UTC", "GMT", "Etc/GMT+12", "Etc/GMT-14", "EST5EDT", "US/Eastern", "Asia/Calcutta", "Asia/Kolkata"],
]

/** Zones that skip a day or midnight, or that have midnight twice. */
export const ODD_ZONES: readonly string[] = [
  ...[
    "America/Sao_Paulo",
    "America/St_Johns",
    "Pacific/Apia",
    "Australia/Lord_Howe",
    "Africa/Cairo",
    "Asia/Gaza",
  ],
]

/** Anchors that begin in long and short months, and in leap years. */
export const ANCHORS: readonly (readonly [per: CalendarPeriod, anchors: readonly number[]])[] = [
  ["day", [0]],
  ["week", [1, 6, 7]],
  ["month", [1, 15, 28, 29, 30, 31]],
  ["year", [101, 228, 229, 401, 1231]],
]

/** A time during which clocks differ from UTC by a constant. */
interface Offset {
  readonly fromMs: number
  readonly toMs: number
  readonly offsetMs: number
}

/** Returns all offsets of a zone in the tested years, according to Temporal. */
export function offsetsOf(zone: string): readonly Offset[] {
  let at: Temporal.ZonedDateTime | null = Temporal.Instant.fromEpochMilliseconds(
    FIRST_MS - 3 * YEAR_MS,
  ).toZonedDateTimeISO(zone)
  const offsets: Offset[] = []
  while (at !== null && at.epochMilliseconds < END_MS + 6 * YEAR_MS) {
    const next: Temporal.ZonedDateTime | null = at.getTimeZoneTransition("next")
    const toMs = next?.epochMilliseconds ?? Number.POSITIVE_INFINITY
    offsets.push({ fromMs: at.epochMilliseconds, toMs, offsetMs: at.offsetNanoseconds / 1e6 })
    at = next
  }
  return offsets
}

/** Returns one zone of each group of zones whose clocks always show the same time in the tested years. */
export function differentZones(zones: readonly string[]): readonly string[] {
  return [...new Map(zones.map((zone) => [JSON.stringify(offsetsOf(zone)), zone])).values()]
}

/** Returns all boundaries of periods in the tested years, and three more at each end. */
export function boundariesOf(
  per: CalendarPeriod,
  anchor: number,
  offsets: readonly Offset[],
): readonly number[] {
  const starts = midnightsOf(per, anchor).map((midnightMs) => {
    // The first moment at which clocks show the midnight or a later time.
    for (const { fromMs, toMs, offsetMs } of offsets) {
      const startMs = Math.max(fromMs, midnightMs - offsetMs)
      if (startMs < toMs) return startMs
    }
    throw new Error("The offsets end too early.")
  })
  return [...new Set(starts)]
}

/** The results of `midnightsOf`, which are the same for all zones. */
const midnights = new Map<string, readonly number[]>()

/** Returns the midnights with which all periods begin in UTC. */
function midnightsOf(per: CalendarPeriod, anchor: number): readonly number[] {
  const key = `${per} ${anchor}`
  const known =
    midnights.get(key) ?? daysOf(per, anchor).map((day) => day.toZonedDateTime("UTC").epochMilliseconds)
  midnights.set(key, known)
  return known
}

/** Returns the first days of all periods. */
function daysOf(per: CalendarPeriod, anchor: number): readonly Temporal.PlainDate[] {
  const from = Temporal.PlainDate.from("2000-01-01")
  const count = (unit: number) =>
    Array.from({ length: Math.ceil((END_MS - FIRST_MS) / unit / 86_400_000) + 6 }, (_, i) => i - 3)
  const within = (month: Temporal.PlainYearMonth, day: number) =>
    month.toPlainDate({ day: Math.min(day, month.daysInMonth) })
  switch (per) {
    case "day":
      return count(1).map((days) => from.add({ days }))
    case "week": {
      const first = from.add({ days: anchor - from.dayOfWeek })
      return count(7).map((weeks) => first.add({ weeks }))
    }
    case "month":
      return count(365.25 / 12).map((months) => within(from.toPlainYearMonth().add({ months }), anchor))
    case "year":
      return count(365.25).map((years) =>
        within(
          Temporal.PlainYearMonth.from({ year: 2000 + years, month: Math.floor(anchor / 100) }),
          anchor % 100,
        ),
      )
  }
}
