import { createLimiter } from "@sluice/core"
import type { Surroundings } from "../surroundings.ts"

/** What the checkout service knows the inventory service by. */
export interface Inventory {
  /** Rejects with RateLimitExceededError, whose `decision` says for how long, when the pair's limit is reached. */
  stockOf(item: string): Promise<number>
  close(): Promise<void>
}

/** The inventory service as the checkout service may use it: 500 calls a second, whoever they are for. */
export function limitInventory(
  fetchStock: (item: string) => Promise<number>,
  surroundings: Pick<Surroundings, "clock"> = {},
): Inventory {
  const limiter = createLimiter({
    ...surroundings,
    service: "checkout-to-inventory",
    // In `rules`, a rule without a field is one counter for all: the pair's, not that of a user behind a call.
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
