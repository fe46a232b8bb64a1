import { createLimiter } from "@sluice/core"
import type { Surroundings } from "../surroundings.ts"

type StockOf = (item: string) => Promise<number>

/**
 * Limits the calls of the inventory service to 500 per second, for all users
 * together. A call above the limit rejects
 * with RateLimitExceededError, whose `decision` has the time to wait.
 */
export function limitInventory(
  stockOf: StockOf,
  surroundings: Surroundings = {},
): StockOf {
  // The rule has one counter for the pair of services. It does not depend on the
  // user of a call.
  const rules = [
    { name: "calls", field: "service", limit: 500, window: "1 second" },
  ]
  const limiter = createLimiter({
    ...surroundings,
    service: "checkout-to-inventory",
    rules,
  })
  return async (item) => {
    await limiter.enforce({})
    return stockOf(item)
  }
}
