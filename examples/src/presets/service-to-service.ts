import { createLimiter } from "@sluice/core"
import type { Surroundings } from "../surroundings.ts"

/** The interface of the inventory service for the checkout service. */
export interface Inventory {
  /**
   * Returns the stock of an item. If the limit is reached, rejects with RateLimitExceededError, whose `decision` has
   * the time to wait.
   */
  stockOf(item: string): Promise<number>
  close(): Promise<void>
}

/**
 * Wraps the inventory service for the checkout service, with a limit of 500 calls per second for all users together.
 */
export function limitInventory(
  fetchStock: (item: string) => Promise<number>,
  surroundings: Pick<Surroundings, "clock"> = {},
): Inventory {
  const limiter = createLimiter({
    ...surroundings,
    service: "checkout-to-inventory",
    // This rule has one counter for the pair of services. It does not depend on the user of a call.
    rules: [{ name: "calls", field: "service", limit: 500, window: "1 second" }],
  })
  return {
    async stockOf(item) {
      await limiter.enforce({})
      return fetchStock(item)
    },
    close: () => limiter.close(),
  }
}
