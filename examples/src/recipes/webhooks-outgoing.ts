import { createLimiter } from "@sluice/core"
import type { Surroundings } from "../surroundings.ts"

type Delivery = { endpoint: string; body: string }

export function createDelivery(surroundings: Surroundings = {}) {
  const limiter = createLimiter<Delivery>({
    ...surroundings,
    name: "webhooks",
    field: "endpoint",
    limit: 5,
    window: "1 second",
    algorithm: "token-bucket",
    fields: { endpoint: ({ endpoint }) => endpoint },
  })
  return async (delivery: Delivery, signal: AbortSignal): Promise<Response> => {
    const { endpoint, body } = delivery
    const wait = { signal, maxWaitMs: 60_000, maxWaiting: 500 }
    const decision = await limiter.acquire(delivery, wait)
    try {
      const response = await fetch(endpoint, { method: "POST", body, signal })
      const pauseMs = Number(response.headers.get("retry-after")) * 1000
      if (pauseMs > 0)
        await limiter.block(delivery, { for: Math.min(pauseMs, 3_600_000) })
      return response
    } catch (error) {
      await limiter.refund(decision)
      throw error
    }
  }
}
