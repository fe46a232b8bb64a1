import { createLimiter } from "@sluice/core"
import type { Surroundings } from "../surroundings.ts"

type Delivery = { readonly endpoint: string; readonly body: string }

/**
 * Returns a function that delivers webhooks: at most 5 a second to each endpoint,
 * first come, first served.
 */
export function createDelivery(surroundings: Surroundings = {}) {
  const fields = { endpoint: ({ endpoint }: Delivery) => endpoint }
  const rate = { name: "webhooks", field: "endpoint", limit: 5, window: "1 second" }
  const limiter = createLimiter<Delivery>({
    ...surroundings,
    ...rate,
    fields,
    algorithm: "token-bucket",
  })
  return async (delivery: Delivery, signal: AbortSignal): Promise<Response> => {
    const decision = await limiter.acquire(delivery, {
      signal,
      maxWaitMs: 60_000,
      maxWaiting: 500,
    })
    try {
      const response = await fetch(delivery.endpoint, {
        method: "POST",
        body: delivery.body,
        signal,
      })
      // An endpoint that asks for a pause gets one, up to an hour. Later deliveries
      // to it wait in line.
      const pauseMs = Number(response.headers.get("retry-after")) * 1000
      if (pauseMs > 0)
        await limiter.block(delivery, { for: Math.min(pauseMs, 3_600_000) })
      return response
    } catch (error) {
      await limiter.refund(decision) // It was not delivered, so it does not count.
      throw error
    }
  }
}
