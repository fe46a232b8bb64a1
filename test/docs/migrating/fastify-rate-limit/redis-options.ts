import { redisStore } from "@sluice/redis"
import type { Redis } from "ioredis"
import type { RedisForTests } from "../../../servers/redis-for-tests.ts"
import type { Pair } from "../pairs.ts"
import { closedClient } from "../redis.ts"
import { thenRefused, twice } from "../requests.ts"
import { after, before, type More } from "./app.ts"

/** Adds an unlimited route that returns the number of keys with the prefix. */
const tellsKeys =
  ({ server }: RedisForTests, prefix: string): More =>
  (app) =>
    void app.get("/keys", { config: { rateLimit: false } }, async () => {
      const keys = (await server.command("KEYS", `${prefix}*`)) as unknown[]
      return String(keys.length)
    })

/** Returns the pairs of options that need Redis. The window is long enough for a slow machine. */
export const redisOptions = (redis: RedisForTests): Readonly<Record<string, Pair>> => {
  const inRedis = (prefix = "") =>
    ({
      ...{ service: "migrated", window: "1 day", storeTimeoutMs: 20_000, clock: undefined },
      store: redisStore({ client: redis.client, prefix }),
    }) as const
  const failing = (client: Redis) => ({
    service: "migrated",
    clock: undefined,
    store: redisStore({ client }),
  })
  return {
    redis: {
      before: () => before({ redis: redis.client })(),
      after: (clock) => after(inRedis())(clock),
      steps: twice,
      expected: thenRefused,
    },
    nameSpace: {
      before: () => before({ redis: redis.client, nameSpace: "old:" }, tellsKeys(redis, "old:"))(),
      after: (clock) => after(inRedis("new:"), tellsKeys(redis, "new:"))(clock),
      steps: ["/", "/keys"],
      told: ({ body }) => body,
      expected: ["ok", "1"],
    },
    skipOnError: {
      before: async () => before({ redis: await closedClient(redis), skipOnError: true })(),
      after: async (clock) =>
        after({ ...failing(await closedClient(redis)), onStoreFailure: "allow" })(clock),
      steps: [...twice, "/"],
      expected: [200, 200, 200],
    },
  }
}
