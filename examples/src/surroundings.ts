import type { LimiterOptions } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import { Redis } from "ioredis"

/**
 * The options that differ between production, tests and a laptop: the clock, the proxies in front of the app, and the
 * store.
 */
export type Surroundings = Pick<LimiterOptions<unknown>, "clock" | "service" | "store" | "trustedProxies">

/**
 * Returns the options from the environment. TRUSTED_PROXIES is the number of proxies in front of the app: none by
 * default, often 1 in production. If REDIS_URL is set, all instances share counters in Redis. Otherwise, each
 * instance counts in memory.
 */
export function fromEnvironment(): Surroundings {
  const { REDIS_URL, TRUSTED_PROXIES = 0 } = process.env
  const trustedProxies = Number(TRUSTED_PROXIES)
  // Compose and similar tools set a missing variable to an empty string.
  if (REDIS_URL === undefined || REDIS_URL === "") return { trustedProxies }
  const client = new Redis(REDIS_URL)
  // Log why there is no connection, such as a wrong password, because the limiter does not know the reason. The Redis
  // client keeps trying to reconnect.
  client.on("error", (error) => console.error(error))
  return { trustedProxies, store: redisStore({ client }), service: "example" }
}
