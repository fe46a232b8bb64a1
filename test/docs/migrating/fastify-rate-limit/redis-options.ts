import { redisStore } from "@sluice/core/redis"
import type { Pair } from "../pairs.ts"
import { closedClient, type Running } from "../redis.ts"
import { thenRefused, twice } from "../requests.ts"
import { after, before, type More } from "./app.ts"

/** Adds an unlimited route that returns the number of keys with the prefix. */
const tellsKeys =
  ({ server }: Running): More =>
  (app) =>
    void app.get("/keys", { config: { rateLimit: false } }, async () => {
      const keys = (await server.command("KEYS", "mine:*")) as unknown[]
      return String(keys.length)
    })

/** Returns the options that need a Redis. The window is long enough for a slow machine. */
export const redisOptions = (redis: Running): Readonly<Record<string, Pair>> => {
  const inRedis = (prefix = "") =>
    ({
      ...{ service: "migrated", window: "1 day", storeTimeoutMs: 20_000, clock: undefined },
      store: redisStore({ client: redis.client, prefix }),
    }) as const
  return {
    redis: {
      before: () => before({ redis: redis.client })(),
      after: (clock) => after(inRedis())(clock),
      steps: twice,
      expected: thenRefused,
    },
    nameSpace: {
      before: () => before({ redis: redis.client, nameSpace: "mine:" }, tellsKeys(redis))(),
      async after(clock) {
        await redis.server.command("FLUSHALL")
        return after(inRedis("mine:"), tellsKeys(redis))(clock)
      },
      steps: ["/", "/keys"],
      told: ({ body }) => body,
      expected: ["ok", "1"],
    },
    skipOnError: {
      before: async () => before({ redis: await closedClient(redis), skipOnError: true })(),
      async after(clock) {
        const store = redisStore({ client: await closedClient(redis) })
        return after({ service: "migrated", store, onStoreFailure: "allow", clock: undefined })(clock)
      },
      steps: [...twice, "/"],
      expected: [200, 200, 200],
    },
  }
}
