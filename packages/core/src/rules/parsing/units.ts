import { ALGORITHMS, type AlgorithmName } from "../../algorithms/kinds.ts"

/**
 * Returns the most units that are counted exactly: units times the window, in whole seconds or else in milliseconds, are below
 * 2^53.
 */
export function mostExactUnits(windowMs: number): number {
  const unitMs = windowMs % 1000 === 0 ? 1000 : 1
  return Math.floor(Number.MAX_SAFE_INTEGER / (windowMs / unitMs))
}

/** Returns the most units that a counter of the algorithm may hold. */
export function mostUnits(algorithm: AlgorithmName, windowMs: number): number {
  return Math.min(mostExactUnits(windowMs), ALGORITHMS[algorithm].mostUnits ?? Number.POSITIVE_INFINITY)
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
