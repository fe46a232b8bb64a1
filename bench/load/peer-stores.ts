import { createRequire } from "node:module"

// The internal stores of two peers, which their public middleware uses.

const require = createRequire(import.meta.url)

/** The callback that a store of @fastify/rate-limit calls after counting. */
export type Counted = (error: unknown, entry: { readonly current: number } | null) => void

/** A store of @fastify/rate-limit. */
export interface FastifyStore {
  incr(key: string, counted: Counted, windowMs: number, limit: number): void
}

/** The store that the plugin uses without a Redis client. */
export const FastifyLocalStore: new () => FastifyStore = require("@fastify/rate-limit/store/LocalStore.js")

/** The store that the plugin uses with a Redis client. */
export const FastifyRedisStore: new (
  continueExceeding: boolean,
  exponentialBackoff: boolean,
  client: unknown,
) => FastifyStore = require("@fastify/rate-limit/store/RedisStore.js")

/** Counts one request as the plugin does. Resolves to true if the request is within the limit. */
export function incremented(
  store: FastifyStore,
  key: string,
  windowMs: number,
  limit: number,
): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const counted: Counted = (error, entry) =>
      entry === null ? reject(error) : resolve(entry.current <= limit)
    store.incr(key, counted, windowMs, limit)
  })
}

/** The object that koa-ratelimit creates for each request. */
interface KoaLimiter {
  get(): Promise<{ readonly remaining: number }>
}
type KoaLimiterClass = new (options: {
  readonly id: string
  readonly db: unknown
  readonly max: number
  readonly duration: number
}) => KoaLimiter

/** The limiter of the driver "memory". `db` is a Map. */
export const KoaMemoryLimiter: KoaLimiterClass = require("koa-ratelimit/limiter/memory.js")

/** The limiter of the driver "redis". `db` is an ioredis client. */
export const KoaRedisLimiter: KoaLimiterClass = require("koa-ratelimit/limiter/redis.js")
