import { InvalidOptionError, type Rule } from "@sluice/core"
import type { CalendarRule } from "@sluice/core/adapters"
import { createReplay } from "@sluice/core/replay"
import { LogError } from "../log-error.ts"
import type { WindowAlgorithm } from "./window-peaks.ts"

/** A window for which limits are suggested. */
export interface WindowLength {
  /** The length in milliseconds. */
  readonly ms: number
  /** The window as written in a rule: "1 minute". */
  readonly text: string
  /** For names: "1m". */
  readonly short: string
  /** Present for calendar periods, whose length in milliseconds is that of the longest one. */
  readonly calendar?: Pick<CalendarRule, "per" | "timeZone">
  /** For sentences: "minute" in "60 per minute", "10 minutes" in "60 per 10 minutes". */
  readonly per: string
}

const UNITS = {
  s: { ms: 1_000, noun: "second" },
  m: { ms: 60_000, noun: "minute" },
  h: { ms: 3_600_000, noun: "hour" },
  d: { ms: 86_400_000, noun: "day" },
} as const

/**
 * For windows up to a week, the product of a count and the window is an exact integer if the count is at most 15
 * million.
 */
const LONGEST_MS = 7 * UNITS.d.ms

/** The longest periods. A day on which clocks are set back has 25 hours. */
const PERIOD_MS: Readonly<Record<CalendarRule["per"], number>> = {
  day: UNITS.d.ms + UNITS.h.ms,
  week: 7 * UNITS.d.ms + UNITS.h.ms,
  month: 31 * UNITS.d.ms + UNITS.h.ms,
  year: 366 * UNITS.d.ms,
}

/** The form that `parseWindow` accepts, for messages. */
const WINDOW_ACCEPTED = "a number and s, m, h or d, such as 10s, 1m or 1h, up to 7d"

/** Returns a window such as "1m"; undefined if the text is invalid or the window is longer than a week. */
export function parseWindow(text: string): WindowLength | undefined {
  const parts = /^([1-9]\d{0,5})?([smhd])$/.exec(text.trim())
  if (parts === null) return undefined
  const count = Number(parts[1] ?? 1)
  const unit = UNITS[parts[2] as keyof typeof UNITS]
  const ms = count * unit.ms
  if (ms > LONGEST_MS) return undefined
  const nouns = `${count} ${unit.noun}${count === 1 ? "" : "s"}`
  return { ms, text: nouns, short: `${count}${parts[2]}`, per: count === 1 ? unit.noun : nouns }
}

/** Returns the calendar period of a name such as "month". Undefined for another text. */
function calendarOf(text: string, timeZone: string): WindowLength | undefined {
  const per = (Object.keys(PERIOD_MS) as CalendarRule["per"][]).find((each) => each === text.trim())
  return per && { ms: PERIOD_MS[per], text: per, short: per, calendar: { per, timeZone }, per }
}

/** Returns the members of a rule that counts in the window. A calendar period always counts as a fixed window. */
export function windowMembers(
  { text, calendar }: WindowLength,
  algorithm: WindowAlgorithm,
): Pick<Rule, "window" | "per" | "timeZone" | "algorithm"> {
  if (calendar !== undefined) return calendar
  return { window: text, ...(algorithm !== "sliding-window" && { algorithm }) }
}

/** A limit for the whole service. */
export interface Capacity {
  readonly limit: number
  readonly window: WindowLength
}

/** Returns a capacity such as "500/s" or "20000/10m"; undefined if the text is invalid. */
export function parseCapacity(text: string): Capacity | undefined {
  const parts = /^([1-9]\d{0,11})\/(.+)$/.exec(text.trim())
  const window = parts === null ? undefined : parseWindow(parts[2] as string)
  return window && { limit: Number(parts?.[1]), window }
}

/**
 * Returns the windows without duplicates, the shortest first. Throws LogError if a string is not a window, or not a
 * time zone.
 */
export function windowsOf(texts: readonly string[], timeZone: string): readonly WindowLength[] {
  const windows = texts.map((text) => {
    const window = parseWindow(text) ?? calendarOf(text, timeZone)
    if (window === undefined)
      throw new LogError(
        `--windows: ${text} is not a window: expected ${WINDOW_ACCEPTED}, or day, week, month or year for calendar periods`,
      )
    return window
  })
  requireRule("--time-zone", { field: "service", limit: 1, per: "day", timeZone })
  const distinct = new Map(windows.map((window) => [window.ms, window]))
  return [...distinct.values()].sort((one, other) => one.ms - other.ms)
}

/**
 * Returns the capacity. Throws LogError if the text is not a capacity, or if the algorithm cannot count to this
 * limit.
 */
export function capacityOf(text: string, algorithm: WindowAlgorithm): Capacity {
  const capacity = parseCapacity(text)
  if (capacity === undefined)
    throw new LogError(
      `--capacity: ${text} is not a capacity: expected a number of requests, a slash and ${WINDOW_ACCEPTED}: 500/s or 20000/10m`,
    )
  const { limit, window } = capacity
  requireRule("--capacity", { field: "service", limit, window: window.text, algorithm })
  return capacity
}

/** Throws LogError, which names the option, if the rule is not valid. */
function requireRule(option: string, rule: Rule): void {
  try {
    createReplay({ rules: [rule] })
  } catch (error) {
    const [problem] = error instanceof InvalidOptionError ? error.problems : []
    throw new LogError(`${option}: ${problem?.message}; accepted: ${problem?.accepted}`, { cause: error })
  }
}
