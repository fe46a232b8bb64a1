import type { Ask } from "../ask.ts"

/**
 * When who comes to a line can have units of its counter at the earliest, as things stand: `ahead` stand before it, each of whom
 * wants `leastCost` units or more, and the first of them has nothing before `firstMs`. From then on no algorithm grants more
 * than the limit in a window, but for what the first has waited for.
 */
export function earliestMs(firstMs: number, ahead: number, leastCost: number, ask: Ask): number {
  const { policy, policyNow, cost } = ask
  // What is admitted above the limit goes by what is there to spare then.
  if (policyNow !== undefined) return firstMs
  const windows = Math.floor(((ahead - 1) * leastCost + cost) / policy.limit)
  return firstMs + windows * policy.windowMs
}
