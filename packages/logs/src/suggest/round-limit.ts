const STEPS = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10] as const

/** Returns the smallest round limit that is not below `least`: 721 becomes 800, and 11 becomes 12. */
export function roundLimit(least: number): number {
  if (least <= 1) return 1
  const power = 10 ** Math.floor(Math.log10(least))
  // Also try the next power of ten, because the logarithm of a power of ten may be rounded down.
  for (const base of [power, 10 * power]) {
    for (const step of STEPS) {
      const limit = Math.round(step * base * 10) / 10
      if (Number.isInteger(limit) && limit >= least) return limit
    }
  }
  return 100 * power
}
