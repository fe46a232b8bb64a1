import { parseDuration, type RateUnit } from "../../ground/duration.ts"
import type { StorableRule } from "../rule.ts"

const RATE_MS: readonly (readonly [RateUnit, number])[] = [
  ["week", 604_800_000],
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1_000],
]

/** The units of a rate. */
export const RATE_UNITS: readonly RateUnit[] = RATE_MS.map(([unit]) => unit).reverse()

/**
 * Returns the stored form of the limit and the window. A window of one unit is written as a rate. A rule with
 * `concurrent` has neither.
 */
export function storeSize({ limit, window }: StorableRule): Readonly<Record<string, unknown>> {
  const windowMs = parseDuration(window)
  const [unit] = RATE_MS.find(([, ms]) => windowMs === ms) ?? []
  if (unit !== undefined) return { rate: { requests_per_unit: limit, unit } }
  return { limit, window: typeof window === "function" ? window : window && storeDuration(window) }
}

/** Returns the duration in the largest unit that divides it, or in milliseconds: 90000 is "90 seconds". */
export function storeDuration(duration: number | string): number | string {
  const ms = parseDuration(duration) as number
  const [unit, unitMs] = RATE_MS.find(([, each]) => ms % each === 0) ?? []
  if (unit === undefined || unitMs === undefined) return ms
  return ms === unitMs ? `1 ${unit}` : `${ms / unitMs} ${unit}s`
}
