const MS_PER_UNIT = {
  millisecond: 1,
  second: 1_000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  week: 604_800_000,
} as const

/** The units that are valid for `rate.unit` of a stored rule. */
export type RateUnit = "second" | "minute" | "hour" | "day" | "week"

const SPELLINGS: Readonly<Record<string, keyof typeof MS_PER_UNIT>> = {
  ms: "millisecond",
  msec: "millisecond",
  millisecond: "millisecond",
  s: "second",
  sec: "second",
  second: "second",
  m: "minute",
  min: "minute",
  minute: "minute",
  h: "hour",
  hr: "hour",
  hour: "hour",
  d: "day",
  day: "day",
  w: "week",
  week: "week",
}

/** A description of the input that `parseDuration` accepts, for error messages. */
export const DURATION_ACCEPTED =
  'a positive whole number of milliseconds, or a string such as "90 seconds", "1 minute", "15m", "1h", "1 day", "2 weeks"'

/**
 * Returns the milliseconds of a duration such as `90000`, `"90 seconds"`, `"1.5 minutes"` or `"15m"`, or undefined if
 * it is invalid. The result is an integer from 1 to 2^53 - 1.
 *
 * Units are case-insensitive and may end in a plural "s". "m" is a minute. Months are not durations, because their
 * length varies. `per: "month"` of a rule counts by months.
 */
export function parseDuration(value: unknown): number | undefined {
  if (typeof value === "number") return isWholeAndPositive(value) ? value : undefined
  if (typeof value !== "string") return undefined
  const parts = /^(?:(\d{1,15})(?:\.(\d{1,6}))?)?\s*([a-z]{1,12})$/i.exec(value.trim())
  if (parts === null) return undefined
  const word = (parts[3] as string).toLowerCase()
  const unit = Object.hasOwn(SPELLINGS, word) ? SPELLINGS[word] : SPELLINGS[singular(word)]
  if (unit === undefined) return undefined
  const unitMs = MS_PER_UNIT[unit]
  // Compute with the decimals as an integer, because 1.1 times a unit is not exact in floating point.
  const decimals = parts[2] ?? ""
  const partMs = (Number(decimals) * unitMs) / 10 ** decimals.length
  const ms = Number(parts[1] ?? 1) * unitMs + partMs
  return Number.isInteger(partMs) && isWholeAndPositive(ms) ? ms : undefined
}

/**
 * Returns the shortest exact spelling of a duration. For example, 60000 becomes "1m", 90000 "90s", and 1500 "1500ms".
 */
export function formatDuration(ms: number): string {
  if (ms % MS_PER_UNIT.day === 0) return `${ms / MS_PER_UNIT.day}d`
  if (ms % MS_PER_UNIT.hour === 0) return `${ms / MS_PER_UNIT.hour}h`
  if (ms % MS_PER_UNIT.minute === 0) return `${ms / MS_PER_UNIT.minute}m`
  if (ms % MS_PER_UNIT.second === 0) return `${ms / MS_PER_UNIT.second}s`
  return `${ms}ms`
}

function singular(word: string): string {
  // "mss" is not a plural.
  const stem = word.endsWith("s") && !word.endsWith("ss") ? word.slice(0, -1) : ""
  return Object.hasOwn(SPELLINGS, stem) && stem.length > 1 ? stem : ""
}

function isWholeAndPositive(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 1
}
