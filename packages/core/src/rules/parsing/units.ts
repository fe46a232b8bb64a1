import { ALGORITHMS, type RuleAlgorithm } from "../../algorithms/kinds.ts"
import { LONGEST_PERIOD_MS } from "../../ground/calendar.ts"
import { parseDuration } from "../../ground/duration.ts"
import type { Rule } from "../rule.ts"

/** The accepted form of a count, for error messages. */
export const POSITIVE: string = "a positive whole number below 2^53"

/**
 * Returns the maximum number of units that can be counted exactly. The product of the units and the window must be
 * below 2^53. A window of whole seconds is counted in seconds, and any other window in milliseconds. In calendar periods,
 * units are only added up, so that a month may have terabytes. Half of 2^53 leaves space for granted units.
 */
export function mostExactUnits(windowMs: number, isCalendar = false): number {
  if (isCalendar) return Math.floor(Number.MAX_SAFE_INTEGER / 2)
  const unitMs = windowMs % 1000 === 0 ? 1000 : 1
  return Math.floor(Number.MAX_SAFE_INTEGER / (windowMs / unitMs))
}

/** Returns the maximum number of units in a counter of the algorithm. */
export function mostUnits(algorithm: RuleAlgorithm, windowMs: number, isCalendar = false): number {
  const most = ALGORITHMS[algorithm].mostUnits ?? Number.POSITIVE_INFINITY
  return Math.min(mostExactUnits(windowMs, isCalendar), most)
}

/**
 * Returns floor(limit * percent / 100), calculated with exact decimals. With floating-point numbers, 0.57 % of 10,000
 * would be 56.
 */
export function percentOf(limit: number, percent: number): number {
  const [mantissa, exponent] = percent.toExponential().split("e") as [string, string]
  const decimals = mantissa.split(".")[1] ?? ""
  // For example, 5.7e-1 % is 57 / 10^4.
  const scale = 2 + decimals.length - Number(exponent)
  const product = BigInt(limit) * BigInt(mantissa.replace(".", ""))
  return Number(scale >= 0 ? product / 10n ** BigInt(scale) : product * 10n ** BigInt(-scale))
}

/** Returns the smallest percentage of the limit that is a whole unit, with at most two digits more than the limit. */
export function smallestPercent(limit: number): number {
  const scale = 10 ** (String(limit).length + 1)
  return Math.ceil((100 * scale) / limit) / scale
}

/** The longest window that a function may return: a leap year. */
const LONGEST_WINDOW_MS = 366 * 24 * 60 * 60 * 1_000

/** Returns the longest window of a rule in milliseconds. Undefined if neither the window nor the period is valid. */
export function windowMsOf({ window, per }: Pick<Partial<Rule>, "window" | "per">): number | undefined {
  if (per !== undefined) return LONGEST_PERIOD_MS[per]
  return typeof window === "function" ? LONGEST_WINDOW_MS : parseDuration(window)
}
