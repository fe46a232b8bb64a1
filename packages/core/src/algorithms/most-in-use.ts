import { ceilingOf, type Policy } from "../ground/policy.ts"

/** The milliseconds of a leap year. */
export const YEAR_MS: number = 366 * 24 * 60 * 60 * 1000

/**
 * Returns the most units that a bucket owes: its ceiling and the quota of a year, as far as parts of a unit are exact.
 * Charges stop there. A bucket that owes more, because its limit was cut or because it is corrupt, counts as full:
 * otherwise its client would be kept out, and its counter kept, for longer than any rule means.
 */
export function mostInUse(policy: Policy): number {
  const { limit, windowMs } = policy
  // Nothing flows under a limit of 0, and the counter is kept for a window.
  if (limit === 0) return Number.MAX_SAFE_INTEGER
  const ceiling = ceilingOf(policy)
  const ofYear = ceiling + limit * Math.ceil(YEAR_MS / windowMs)
  // A bucket holds at least one part for each second of its window.
  const mostExact = Math.floor(Number.MAX_SAFE_INTEGER / Math.ceil(windowMs / 1000))
  return Math.max(ceiling, Math.min(ofYear, mostExact))
}

/** True if a bucket owes more than it ever should. */
export function owesTooMuch(units: number, policy: Policy): boolean {
  // Nearly always it holds no more than fits.
  return units > ceilingOf(policy) && units > mostInUse(policy)
}
