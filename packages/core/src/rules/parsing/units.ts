import type { AlgorithmName } from "../../ground/policy.ts"

/**
 * Units that a sliding log may hold. Each admission is an entry of some 7 bytes that every decision reads: a thousand are
 * 7 kB for each client, and beyond that "sliding-window-strict" keeps the same bound in a few bytes.
 */
export const LONGEST_LOG = 1_000

/**
 * The most units that are counted exactly: units times the window, in whole seconds or else in milliseconds, are below
 * 2^53. A log is bounded by its length too.
 */
export function mostUnits(algorithm: AlgorithmName, windowMs: number): number {
  const unitMs = windowMs % 1000 === 0 ? 1000 : 1
  const most = Math.floor(Number.MAX_SAFE_INTEGER / (windowMs / unitMs))
  return algorithm === "sliding-log" ? Math.min(most, LONGEST_LOG) : most
}

/** floor(limit * percent / 100) of the decimal number that is written: in floating point 0.57 % of 10,000 would be 56. */
export function percentOf(limit: number, percent: number): number {
  const [mantissa, exponent] = percent.toExponential().split("e") as [string, string]
  const decimals = mantissa.split(".")[1] ?? ""
  // 5.7e-1 % is 57 / 10^4.
  const scale = 2 + decimals.length - Number(exponent)
  const product = BigInt(limit) * BigInt(mantissa.replace(".", ""))
  return Number(scale >= 0 ? product / 10n ** BigInt(scale) : product * 10n ** BigInt(-scale))
}

/** The smallest percentage, with two more digits than the limit has at most, of which the limit yields a whole unit. */
export function smallestPercent(limit: number): number {
  const scale = 10 ** (String(limit).length + 1)
  return Math.ceil((100 * scale) / limit) / scale
}
