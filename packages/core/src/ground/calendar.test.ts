import fc from "fast-check"
import { Temporal } from "temporal-polyfill"
import { describe, expect, it } from "vitest"
import { everyNth, examples } from "../../../../test/test-length.ts"
import { anchorOf, type CalendarPeriod, isTimeZone, periodsAround } from "./calendar.ts"

const ZONES = [...Intl.supportedValuesOf("timeZone"), "UTC"]
const [FROM, TO] = [Date.UTC(2000, 0, 1), Date.UTC(2040, 11, 31)]

/** Returns the boundaries that Temporal computes. */
function expected(per: CalendarPeriod, anchor: number, timeZone: string, nowMs: number): readonly number[] {
  const now = Temporal.Instant.fromEpochMilliseconds(nowMs).toZonedDateTimeISO(timeZone)
  const today = now.toPlainDate()
  const around = [-3, -2, -1, 0, 1, 2, 3]
  const within = (month: Temporal.PlainYearMonth, day: number) =>
    month.toPlainDate({ day: Math.min(day, month.daysInMonth) })
  const days = {
    day: () => around.map((days) => today.add({ days })),
    week: () => around.map((weeks) => today.add({ days: 7 * weeks + anchor - today.dayOfWeek })),
    month: () => around.map((months) => within(today.toPlainYearMonth().add({ months }), anchor)),
    year: () =>
      around.map((years) =>
        within(
          Temporal.PlainYearMonth.from({ year: today.year + years, month: Math.floor(anchor / 100) }),
          anchor % 100,
        ),
      ),
  }[per]()
  const starts = new Set(days.map((day) => day.toZonedDateTime(timeZone).epochMilliseconds))
  const sorted = [...starts].sort((one, other) => one - other)
  const next = sorted.findIndex((ms) => ms > nowMs)
  return sorted.slice(next - 2, next + 2)
}

const anchors = {
  day: fc.constant(0),
  week: fc.integer({ min: 1, max: 7 }),
  month: fc.integer({ min: 1, max: 31 }),
  year: fc
    .date({ min: new Date("2024-01-01"), max: new Date("2024-12-31"), noInvalidDate: true })
    .map((date) => (date.getUTCMonth() + 1) * 100 + date.getUTCDate()),
}
const calendars = fc
  .constantFrom<CalendarPeriod[]>("day", "week", "month", "year")
  .chain((per) => anchors[per].map((anchor) => [per, anchor] as const))

describe("the periods of a calendar", () => {
  it.each(everyNth(7, ZONES))("in %s begin when Temporal says, from 2000 to 2040", (zone) => {
    const times = fc.integer({ min: FROM, max: TO })
    fc.assert(
      fc.property(calendars, times, ([per, anchor], nowMs) => {
        const periods = periodsAround(per, anchor, zone, nowMs)
        expect(periods).toEqual(expected(per, anchor, zone, nowMs))
        // A period contains its first moment, and not its end.
        for (const at of [periods[1], (periods[2] as number) - 1] as number[])
          expect(periodsAround(per, anchor, zone, at)).toEqual(periods)
      }),
      { numRuns: examples(10, 300) },
    )
  })

  const ms = (text: string) => Date.parse(text)
  const texts = (per: CalendarPeriod, anchor: number, zone: string, now: string) =>
    periodsAround(per, anchor, zone, ms(now)).map((each) =>
      new Date(each).toISOString().replace(":00.000Z", "Z"),
    )

  it("begin on the last day of a month without the anchor's day", () => {
    expect(texts("month", 31, "UTC", "2026-02-27T12:00Z")).toEqual([
      ...["2025-12-31T00:00Z", "2026-01-31T00:00Z", "2026-02-28T00:00Z", "2026-03-31T00:00Z"],
    ])
    expect(texts("month", 30, "UTC", "2028-02-29T00:00Z")[1]).toBe("2028-02-29T00:00Z")
    expect(texts("year", 229, "UTC", "2027-01-01T00:00Z")).toEqual([
      ...["2025-02-28T00:00Z", "2026-02-28T00:00Z", "2027-02-28T00:00Z", "2028-02-29T00:00Z"],
    ])
  })

  it("last 23 or 25 hours when clocks change", () => {
    expect(texts("day", 0, "Europe/Berlin", "2026-03-29T12:00Z").slice(1, 3)).toEqual([
      ...["2026-03-28T23:00Z", "2026-03-29T22:00Z"],
    ])
    expect(texts("day", 0, "Europe/Berlin", "2026-10-25T12:00Z").slice(1, 3)).toEqual([
      ...["2026-10-24T22:00Z", "2026-10-25T23:00Z"],
    ])
  })

  it("begin when clocks are set forward at midnight, and once if midnight occurs twice", () => {
    expect(texts("day", 0, "America/Sao_Paulo", "2018-11-04T12:00Z")[1]).toBe("2018-11-04T03:00Z")
    // At 00:01, clocks in Newfoundland were set back to 23:01 of the day before.
    expect(texts("day", 0, "America/St_Johns", "2010-11-07T03:00Z").slice(1, 3)).toEqual([
      ...["2010-11-07T02:30Z", "2010-11-08T03:30Z"],
    ])
  })

  it("begin with the next day if the zone skips a day", () => {
    expect(texts("day", 0, "Pacific/Apia", "2011-12-30T12:00Z").slice(0, 3)).toEqual([
      ...["2011-12-29T10:00Z", "2011-12-30T10:00Z", "2011-12-31T10:00Z"],
    ])
    expect(texts("month", 30, "Pacific/Apia", "2012-01-15T12:00Z")[1]).toBe("2011-12-30T10:00Z")
  })
})

describe("an anchor", () => {
  it.each<[CalendarPeriod, unknown, number | undefined]>([
    ["month", 1, 1],
    ["month", 31, 31],
    ["month", 0, undefined],
    ["month", 32, undefined],
    ["month", 1.5, undefined],
    ["month", "15", 15],
    ["month", "015", undefined],
    ["month", "32", undefined],
    ["month", "2026-01-31", 31],
    ["month", "2026-01-31T23:30:00.000-05:00", 31],
    ["month", new Date("2026-01-31T23:30:00Z"), 31],
    ["month", new Date(Number.NaN), undefined],
    ["month", "2026-13-01", undefined],
    ["month", "2026-02-30", undefined],
    ["month", "01-31", undefined],
    ["month", null, undefined],
    ["week", 1, 1],
    ["week", 7, 7],
    ["week", 8, undefined],
    ["week", "2026-11-29", 7],
    ["week", "2026-11-30", 1],
    ["week", "11-30", undefined],
    ["year", "02-29", 229],
    ["year", "2024-12-31", 1231],
    ["year", 131, undefined],
    ["year", "00-10", undefined],
    ["day", 1, undefined],
  ])("of a %s that is %j has the number %j", (per, value, number) => {
    expect(anchorOf(per, value)).toBe(number)
  })
})

describe("a time zone", () => {
  it.each([
    ["Europe/Berlin", true],
    ["UTC", true],
    ["europe/berlin", true],
    ["Berlin", false],
    ["+01:00", false],
    ["", false],
    [7, false],
    [undefined, false],
  ] as const)("may be %j: %j", (value, is) => {
    expect(isTimeZone(value)).toBe(is)
  })
})
