import type { Store } from "@sluice/core"
import { redisStore } from "@sluice/core/redis"
import { Redis } from "ioredis"

/** Options for counters in the Redis that REDIS_URL names, which all instances share; without it, none: in memory. */
export function sharedStore(): { readonly store?: Store; readonly service?: string } {
  const { REDIS_URL } = process.env
  // Compose and its like set a variable that nobody gave to an empty text.
  if (REDIS_URL === undefined || REDIS_URL === "") return {}
  const client = new Redis(REDIS_URL)
  // Why there is no connection, which the limiter cannot know: refused, a wrong password. The client goes on trying by itself.
  client.on("error", (error) => console.error(error))
  return { store: redisStore({ client }), service: "example" }
}
