import type { CounterState } from "./algorithm.ts"

/**
 * Units to give back or, where they are negative, to charge: so many that what the counter holds stays a safe integer. With
 * 2^53 - 3 in use a charge of 5 is one of 2, and where two windows hold more than that together, one of nothing. Scripts of
 * the Redis store do the same in scripts/refund.lua.
 */
export function chargeable({ current, previous }: CounterState, units: number): number {
  return Math.max(units, Math.min(0, current + previous - Number.MAX_SAFE_INTEGER))
}
