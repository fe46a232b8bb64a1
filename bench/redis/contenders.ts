import { createLimiter, type Decision, type Logger, type Store } from "@sluice/core"
import type { StoreResult } from "@sluice/core/stores"
import { redisStore } from "@sluice/redis"
import type { Store as ExpressRateLimitStore, Options } from "express-rate-limit"
import { type RedisReply, RedisStore } from "rate-limit-redis"
import { RateLimiterRedis, RateLimiterUnion } from "rate-limiter-flexible"
import type { Contender, ContenderKind, Outcome, Setup } from "../load/contender.ts"
import { judgeDecision, judgeRejection, policyOf } from "../load/judging.ts"
import { FastifyRedisStore, incremented, KoaRedisLimiter } from "../load/peer-stores.ts"
import { byEmptyScript, byLock, byWatch } from "./by-hand.ts"
import { connect } from "./connect.ts"
import { upstash } from "./upstash.ts"

/** The timeout. Peers have none. With the default of 50 ms, a round would sometimes fail on a busy machine. */
const PATIENCE_MS = 2_000
const SILENT: Logger = { warn() {}, error() {} }
const SCRIPTS = ["evalsha", "eval"]
const FAILED = (): Outcome => "failed"

/** Each contender, set up as its documentation recommends, on an ioredis client with one connection. */
export const ON_REDIS: Readonly<Record<string, ContenderKind>> = {
  "sluice take": {
    sends: SCRIPTS,
    async create({ port, limits }): Promise<Contender<StoreResult>> {
      const store = redisStore({ client: await connect(port), timeoutMs: PATIENCE_MS })
      const policies = limits.map(policyOf)
      const [first] = policies
      if (first === undefined) throw new Error("There is no limit")
      return {
        count:
          policies.length === 1
            ? (key) => store.take([{ policy: first, partition: key, cost: 1, shadow: false }])
            : (key) =>
                store.take(policies.map((policy) => ({ policy, partition: key, cost: 1, shadow: false }))),
        judge: ({ granted }) => (granted ? "granted" : "refused"),
        judgeError: FAILED,
      }
    },
  },
  "sluice decide": {
    sends: SCRIPTS,
    create: (setup) => deciding(setup, (store) => store),
  },
  "sluice decide, leased": {
    sends: SCRIPTS,
    // `bench:compare` also loads this file with commits that have no leases.
    create: async (setup) => deciding(setup, (await import("@sluice/scale")).leasedStore),
  },
  "rate-limiter-flexible": {
    sends: SCRIPTS,
    async create({ port, limits }) {
      const limiters = await flexible(port, limits, false)
      const [only] = limiters
      if (limiters.length === 1 && only !== undefined)
        return { count: (key) => only.consume(key), judge: () => "granted", judgeError: judgeRejection }
      return {
        // Consume from the limiters in order, as consecutive middlewares do.
        async count(key) {
          for (const limiter of limiters) await limiter.consume(key)
        },
        judge: () => "granted",
        judgeError: judgeRejection,
      }
    },
  },
  "rate-limiter-flexible, block": {
    sends: SCRIPTS,
    async create({ port, limits }) {
      const [limiter] = await flexible(port, limits, true)
      if (limiter === undefined) throw new Error("There is no limit")
      return { count: (key) => limiter.consume(key), judge: () => "granted", judgeError: judgeRejection }
    },
  },
  "rate-limiter-flexible, union": {
    sends: SCRIPTS,
    async create({ port, limits }) {
      const union = new RateLimiterUnion(...(await flexible(port, limits, false)))
      return {
        count: (key) => union.consume(key),
        judge: () => "granted",
        judgeError: (error) => (error instanceof Error ? "failed" : "refused"),
      }
    },
  },
  "express-rate-limit store": {
    sends: SCRIPTS,
    async create({ port, limits }) {
      // `bench:compare` also loads this file with commits that do not have this package.
      const { SluiceStore } = await import("@sluice/express-rate-limit-store")
      const client = await connect(port)
      return byExpressRateLimit(
        limits,
        (prefix) => new SluiceStore({ client, prefix, storeTimeoutMs: PATIENCE_MS }),
      )
    },
  },
  "rate-limit-redis": {
    sends: SCRIPTS,
    async create({ port, limits }) {
      const client = await connect(port)
      const sendCommand = (command: string, ...args: string[]) =>
        client.call(command, ...args) as Promise<RedisReply>
      return byExpressRateLimit(limits, (prefix) => new RedisStore({ prefix, sendCommand }))
    },
  },
  "@fastify/rate-limit": {
    sends: SCRIPTS,
    async create({ port, limits: [first] }): Promise<Contender<boolean>> {
      if (first === undefined) throw new Error("There is no limit")
      const { limit, windowMs } = first
      const store = new FastifyRedisStore(false, false, await connect(port))
      return {
        count: (key) => incremented(store, key, windowMs, limit),
        judge: (granted) => (granted ? "granted" : "refused"),
        judgeError: FAILED,
      }
    },
  },
  "koa-ratelimit": {
    sends: SCRIPTS,
    async create({ port, limits: [first] }): Promise<Contender<boolean>> {
      if (first === undefined) throw new Error("There is no limit")
      const { limit: max, windowMs: duration } = first
      const db = await connect(port)
      return {
        // koa-ratelimit creates a limiter for each request.
        count: async (id) => (await new KoaRedisLimiter({ id, db, max, duration }).get()).remaining > 0,
        judge: (granted) => (granted ? "granted" : "refused"),
        judgeError: FAILED,
      }
    },
  },
  "@upstash/ratelimit, sliding window": upstash,
  "empty script, by hand": { sends: SCRIPTS, create: byEmptyScript },
  "lock, by hand": { sends: ["set", "get", "del"], create: byLock },
  "WATCH, by hand": {
    sends: ["watch", "get", "multi", "incr", "pexpire", "exec", "unwatch"],
    create: byWatch,
  },
}

/** Creates a contender that does what express-rate-limit does with a store for each limit. */
async function byExpressRateLimit(
  limits: Setup["limits"],
  createStore: (prefix: string) => ExpressRateLimitStore,
): Promise<Contender<boolean>> {
  const stores = await Promise.all(
    limits.map(async ({ limit, windowMs }) => {
      const store = createStore(limits.length === 1 ? "rl:" : `rl:${windowMs}:`)
      // The middleware passes all of its options to the store, which reads only these options.
      await store.init?.({ limit, windowMs, logger: SILENT } as Options)
      return { store, limit }
    }),
  )
  return {
    // Each middleware compares the store's count with the limit, and then calls the next one.
    async count(key) {
      for (const { store, limit } of stores) if ((await store.increment(key)).totalHits > limit) return false
      return true
    },
    judge: (granted) => (granted ? "granted" : "refused"),
    judgeError: FAILED,
  }
}

async function deciding(
  { port, limits }: Setup,
  inFront: (store: Store) => Store,
): Promise<Contender<Decision>> {
  const limiter = createLimiter({
    rules: limits.map(({ limit, windowMs, isOfService }) => ({
      ...{ limit, window: `${windowMs} ms`, field: isOfService === true ? "service" : "ip" },
    })),
    store: inFront(redisStore({ client: await connect(port) })),
    storeTimeoutMs: PATIENCE_MS,
    logger: SILENT,
  })
  return {
    count: (key) => limiter.decide({ remoteAddress: key }),
    judge: judgeDecision,
    judgeError: FAILED,
  }
}

async function flexible(
  port: number,
  limits: Setup["limits"],
  blocks: boolean,
): Promise<readonly RateLimiterRedis[]> {
  const storeClient = await connect(port)
  return limits.map(
    ({ limit, windowMs }) =>
      new RateLimiterRedis({
        storeClient,
        points: limit,
        // The library accepts only whole seconds.
        duration: Math.ceil(windowMs / 1_000),
        ...(limits.length === 1 ? {} : { keyPrefix: `rlflx${windowMs}` }),
        ...(blocks ? { inMemoryBlockOnConsumed: limit } : {}),
      }),
  )
}
