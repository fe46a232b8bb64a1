import { rateLimit } from "@sluice/express"
import { redisStore } from "@sluice/redis"
import { rateLimit as expressPeer } from "express-rate-limit"
import type { Redis } from "ioredis"
import { RedisStore } from "rate-limit-redis"
import { RateLimiterRedis } from "rate-limiter-flexible"
import { describe, expect, it } from "vitest"
import { appOf, callOf } from "./express-rate-limit/app.ts"
import * as fastify from "./fastify-rate-limit/app.ts"
import * as koa from "./koa-ratelimit/app.ts"
import { type App, commonClock, type Pair, serve, statuses } from "./pairs.ts"
import * as flexible from "./rate-limiter-flexible/app.ts"
import { closedClient, emptyRedis } from "./redis.ts"
import { quiet, thenRefused, twice } from "./requests.ts"

/** An old library that allows one request per minute, and Sluice as its replacement. */
interface Peer {
  readonly name: string
  readonly old: (client: Redis) => App | Promise<App>
  readonly now: (options: ReturnType<typeof storedIn>) => App | Promise<App>
  /** The status of all responses of the old library while Redis fails. */
  readonly failing: number
}

const redis = await emptyRedis()
const storedIn = (client: Redis) => ({
  service: "outages",
  store: redisStore({ client }),
  logger: quiet,
  clock: undefined,
})
const created = (create: Pair["after"]) => create(commonClock())

const PEERS: readonly Peer[] = [
  {
    name: "express-rate-limit",
    old(client) {
      const store = new RedisStore({ sendCommand: callOf(client) })
      return appOf(expressPeer({ windowMs: 60_000, limit: 1, store, logger: quiet }))
    },
    now: ({ clock: _, ...options }) => appOf(rateLimit({ limit: 1, window: "1 minute", ...options })),
    failing: 500,
  },
  {
    name: "@fastify/rate-limit",
    old: (client) => fastify.before({ redis: client })(),
    now: (options) => created(fastify.after(options)),
    failing: 500,
  },
  {
    name: "koa-ratelimit",
    old: (client) => created(koa.before(koa.inRedis(client))),
    now: (options) => created(koa.after(options)),
    failing: 500,
  },
  {
    name: "rate-limiter-flexible",
    old: (storeClient) => flexible.consuming(new RateLimiterRedis({ points: 1, duration: 60, storeClient })),
    now: (options) => created(flexible.after(options)),
    failing: 429,
  },
]

describe.each(PEERS)("as the guide on outages of $name states,", ({ old, now, failing }) => {
  it(`the old library responds ${failing} while Redis fails, and Sluice limits in the process`, async () => {
    expect(await statuses(await old(await closedClient(redis)), twice)).toEqual([failing, failing])
    expect(await statuses(await now(storedIn(await closedClient(redis))), twice)).toEqual(thenRefused)
  })

  it("the old library hangs while Redis is frozen, and Sluice responds after its timeout", async () => {
    const before = await serve(await old(redis.client))
    const after = await serve(await now(storedIn(redis.client)))
    await before("/")
    redis.server.freeze()
    let isAnswered = false
    const waiting = before("/").finally(() => {
      isAnswered = true
    })
    expect((await after("/")).status).toBe(200)
    expect(isAnswered).toBe(false)
    redis.server.thaw()
    expect((await waiting).status).toBe(429)
  })
})
