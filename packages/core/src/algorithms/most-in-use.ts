import { ceilingOf, type Policy } from "../ground/policy.ts"

/** The milliseconds of a leap year. */
export const YEAR_MS: number = 366 * 24 * 60 * 60 * 1000

/**
 * Returns the most units that a bucket may owe: its ceiling plus the quota of a year, or fewer units if the bucket
 * could not count so many exactly. Charges stop at this number. A bucket that owes more units counts as full, because
 * its limit was lowered or its state is corrupt. Otherwise the client of the bucket would be refused, and the counter
 * stored, for longer than any rule intends.
 */
export function mostInUse(policy: Policy): number {
  const { limit, windowMs } = policy
  // With a limit of 0, units are never refilled, and the counter is stored for a window.
  if (limit === 0) return Number.MAX_SAFE_INTEGER
  const ceiling = ceilingOf(policy)
  const ofYear = ceiling + limit * Math.ceil(YEAR_MS / windowMs)
  // For large counts, time is counted in seconds or more, so a unit has at most one part per second of the window.
  const mostExact = Math.floor(Number.MAX_SAFE_INTEGER / Math.ceil(windowMs / 1000))
  return Math.max(ceiling, Math.min(ofYear, mostExact))
}

/** True if a bucket owes more units than {@link mostInUse}. */
export function owesTooMuch(units: number, policy: Policy): boolean {
  // Fast path, because nearly every bucket owes at most its ceiling.
  if (units <= ceilingOf(policy)) return false
  return units > mostInUse(policy)
}
