import type { Store } from "@sluice/core"
import { rateLimit as sluice } from "@sluice/express"
import { redisStore } from "@sluice/redis"
import type { RequestHandler } from "express"
import { rateLimit as peer } from "express-rate-limit"
import type { Redis } from "ioredis"
import { RedisStore } from "rate-limit-redis"
import type { RedisForTests } from "../../../servers/redis-for-tests.ts"
import type { Pair } from "../pairs.ts"
import { closedClient } from "../redis.ts"
import { quiet, thenRefused, twice } from "../requests.ts"
import { appOf, callOf } from "./app.ts"

/** Returns the pairs of options that need Redis, including the options of rate-limit-redis. */
export const redisOptions = (redis: RedisForTests): Readonly<Record<string, Pair>> => {
  const failing = async <S>(storeOf: (client: Redis) => S) => ({
    store: storeOf(await closedClient(redis)),
    logger: quiet,
  })
  return {
    store: {
      before: () => appOf(peer({ limit: 1, store: new RedisStore({ sendCommand: callOf(redis.client) }) })),
      after: () => appOf(sluice({ ...patient, store: redisStore({ client: redis.client }) })),
      steps: twice,
      expected: thenRefused,
    },
    sendCommand: {
      before: () => appOf(peer({ limit: 1, store: new RedisStore({ sendCommand: callOf(redis.client) }) })),
      after: () => appOf(sluice({ ...patient, store: redisStore({ client: redis.client }) })),
      steps: twice,
      expected: thenRefused,
    },
    prefix: {
      before: () => appOf(peer({ limit: 1, store: theirs(redis.client, "old:") }), tellKeys(redis, "old:")),
      after: () => appOf(sluice({ ...patient, store: ours(redis.client, "new:") }), tellKeys(redis, "new:")),
      steps: ["/"],
      told: ({ headers }) => headers["x-keys"],
      expected: ["1"],
    },
    passOnStoreError: {
      before: async () => appOf(peer({ ...(await failing(theirs)), limit: 1, passOnStoreError: true })),
      after: async () => appOf(sluice({ ...(await failing(ours)), ...once, onStoreFailure: "allow" })),
      steps: [...twice, "/"],
      expected: [200, 200, 200],
    },
  }
}

const once = { limit: 1, window: "1 day", service: "migrated" } as const
/** The timeout is long enough for a busy machine. */
const patient = { ...once, storeTimeoutMs: 20_000 } as const

const theirs = (client: Redis, prefix = "rl:"): RedisStore =>
  new RedisStore({ sendCommand: callOf(client), prefix })
const ours = (client: Redis, prefix = ""): Store => redisStore({ client, prefix })

/** Returns a handler that sets X-Keys to the number of keys with a prefix. */
const tellKeys =
  ({ server }: RedisForTests, prefix: string): RequestHandler =>
  (_req, res, next) => {
    void server.command("KEYS", `${prefix}*`).then((keys) => {
      res.set("X-Keys", String((keys as unknown[]).length))
      next()
    })
  }
