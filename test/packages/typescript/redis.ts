import { createLimiter, type Limiter, type Store } from "@sluice/core"
import { type RedisClient, redisKey, redisStore } from "@sluice/redis"
import { Cluster, Redis } from "ioredis"
import { createClient, createCluster } from "redis"

/** One client of each kind. */
const clients: readonly RedisClient[] = [
  new Redis("redis://localhost:6379", { lazyConnect: true }),
  new Cluster([{ host: "localhost", port: 7000 }], { lazyConnect: true }),
  createClient(),
  createCluster({ rootNodes: [{ url: "redis://localhost:7000" }] }),
]
const stores: readonly Store[] = clients.map((client) => redisStore({ client, prefix: "printer:" }))

export const limiters: readonly Limiter[] = stores.map((store) =>
  createLimiter({ limit: 10, window: "1 minute", store }),
)

export async function keyOf(limiter: Limiter): Promise<string | undefined> {
  const [{ counter } = {}] = await limiter.explain({ remoteAddress: "192.0.2.7" })
  return counter && redisKey(counter, "printer:")
}

// @ts-expect-error only known clients are valid
redisStore({ client: {} })
// @ts-expect-error the option is `prefix`, not `keyPrefix`
redisStore({ client: createClient(), keyPrefix: "printer:" })
