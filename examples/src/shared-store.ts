import type { Store } from "@sluice/core"
import { redisStore } from "@sluice/core/redis"
import { Redis } from "ioredis"

/** Options for counters in the Redis that REDIS_URL names, which all instances share; without it, none: in memory. */
export function sharedStore(): { readonly store?: Store; readonly service?: string } {
  const { REDIS_URL } = process.env
  if (REDIS_URL === undefined) return {}
  const client = new Redis(REDIS_URL)
  // The client goes on trying by itself, and the limiter says when it decides without Redis and when it no longer does.
  client.on("error", () => undefined)
  return { store: redisStore({ client }), service: "example" }
}
