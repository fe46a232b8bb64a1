import { redisStore } from "@sluice/core/redis"
import { rateLimit as sluice } from "@sluice/express"
import type { RequestHandler } from "express"
import { rateLimit as peer } from "express-rate-limit"
import type { Redis } from "ioredis"
import { RedisStore } from "rate-limit-redis"
import type { Pair } from "../pairs.ts"
import { closedClient, type Running } from "../redis.ts"
import { quiet, thenRefused, twice } from "../requests.ts"
import { appOf, callOf } from "./app.ts"

const counted = (redis: Running): Pair => ({
  before: () => appOf(peer({ limit: 1, store: new RedisStore({ sendCommand: callOf(redis.client) }) })),
  after: () => appOf(sluice(inRedis(redis.client))),
  steps: twice,
  expected: thenRefused,
})

/** Returns the options that need a Redis, and the options of rate-limit-redis. */
export const redisOptions = (redis: Running): Readonly<Record<string, Pair>> => ({
  store: counted(redis),
  sendCommand: counted(redis),
  prefix: {
    before() {
      const store = new RedisStore({ sendCommand: callOf(redis.client), prefix: "mine:" })
      return appOf(peer({ limit: 1, store }), tellKeys(redis))
    },
    async after() {
      await redis.server.command("FLUSHALL")
      return appOf(sluice(inRedis(redis.client, "mine:")), tellKeys(redis))
    },
    steps: ["/"],
    told: ({ headers }) => headers["x-keys"],
    expected: ["1"],
  },
  passOnStoreError: {
    async before() {
      const store = new RedisStore({ sendCommand: callOf(await closedClient(redis)) })
      return appOf(peer({ limit: 1, store, passOnStoreError: true, logger: quiet }))
    },
    async after() {
      const store = redisStore({ client: await closedClient(redis) })
      return appOf(sluice({ ...once, service: "migrated", store, onStoreFailure: "allow", logger: quiet }))
    },
    steps: [...twice, "/"],
    expected: [200, 200, 200],
  },
})

const once = { limit: 1, window: "1 day" } as const

/** Returns options with a timeout that is long enough for a busy machine. */
const inRedis = (client: Redis, prefix = "") =>
  ({
    ...{ ...once, service: "migrated", storeTimeoutMs: 20_000 },
    store: redisStore({ client, prefix }),
  }) as const

/** Returns a handler that sets X-Keys to the number of keys with the prefix. */
const tellKeys =
  ({ server }: Running): RequestHandler =>
  (_req, res, next) => {
    void server.command("KEYS", "mine:*").then((keys) => {
      res.set("X-Keys", String((keys as unknown[]).length))
      next()
    })
  }
