import { memoryStore } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import type { Middleware } from "koa"
import type { RedisForTests } from "../../../servers/redis-for-tests.ts"
import type { Pair } from "../pairs.ts"
import { thenRefused, twice } from "../requests.ts"
import { after, before, inMemory, inRedis } from "./app.ts"

/** Returns a middleware for /keys that responds with the number of keys with a prefix. */
const tellsKeys =
  ({ server }: RedisForTests, prefix: string): Middleware =>
  async (ctx, next) => {
    if (ctx.path !== "/keys") return next()
    ctx.body = String(((await server.command("KEYS", `${prefix}*`)) as unknown[]).length)
  }

/** Returns the pairs of options that choose where counters are stored. The window is long enough for a slow machine. */
export const redisOptions = (redis: RedisForTests): Readonly<Record<string, Pair>> => {
  const shared = (prefix = "") =>
    ({
      ...{ service: "migrated", window: "1 day", storeTimeoutMs: 20_000, clock: undefined },
      store: redisStore({ client: redis.client, prefix }),
    }) as const
  return {
    driver: {
      before: (clock) => before(inRedis(redis.client))(clock),
      after: (clock) => after(shared())(clock),
      steps: twice,
      expected: thenRefused,
    },
    db: {
      before: before(inMemory()),
      after: (clock) => after({ store: memoryStore({ clock }) })(clock),
      steps: twice,
      expected: thenRefused,
    },
    namespace: {
      before: (clock) =>
        before({ ...inRedis(redis.client), namespace: "old" }, tellsKeys(redis, "old:"))(clock),
      after: (clock) => after(shared("new:"), tellsKeys(redis, "new:"))(clock),
      steps: ["/", "/keys"],
      told: ({ body }) => body,
      expected: ["ok", "1"],
    },
  }
}
