import { createLimiter } from "@sluice/core"
import type { Surroundings } from "../surroundings.ts"

type StockOf = (item: string) => Promise<number>

export function limitInventory(
  stockOf: StockOf,
  surroundings: Surroundings = {},
): StockOf {
  const limiter = createLimiter({
    ...surroundings,
    service: "checkout-to-inventory",
    name: "calls",
    field: "service",
    limit: 500,
    window: "1 second",
  })
  return async (item) => {
    await limiter.enforce({})
    return stockOf(item)
  }
}
