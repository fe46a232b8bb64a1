import type { LimiterOptions } from "@sluice/core"
import { redisStore } from "@sluice/core/redis"
import { Redis } from "ioredis"

/** What differs between production, tests and a laptop: the clock, the proxies in front of the app, and where it counts. */
export type Surroundings = Pick<LimiterOptions<unknown>, "clock" | "service" | "store" | "trustedProxies">

/**
 * What the environment says. TRUSTED_PROXIES is how many proxies stand in front: none by default, often 1 in production. In the
 * Redis that REDIS_URL names all instances count together; without it they count in memory.
 */
export function fromEnvironment(): Surroundings {
  const { REDIS_URL, TRUSTED_PROXIES = 0 } = process.env
  const trustedProxies = Number(TRUSTED_PROXIES)
  // Compose and its like set a variable that nobody gave to an empty text.
  if (REDIS_URL === undefined || REDIS_URL === "") return { trustedProxies }
  const client = new Redis(REDIS_URL)
  // Why there is no connection, which the limiter cannot know: refused, a wrong password. The client goes on trying by itself.
  client.on("error", (error) => console.error(error))
  return { trustedProxies, store: redisStore({ client }), service: "example" }
}
