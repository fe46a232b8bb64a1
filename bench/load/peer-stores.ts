import { createRequire } from "node:module"

// What two peers count with, which they keep behind their middleware.

const require = createRequire(import.meta.url)

/** What a store of @fastify/rate-limit calls when it has counted. */
export type Counted = (error: unknown, entry: { readonly current: number } | null) => void

/** A store of @fastify/rate-limit. */
export interface FastifyStore {
  incr(key: string, counted: Counted, windowMs: number, limit: number): void
}

/** The one that it makes unless it is given a client. */
export const FastifyLocalStore: new () => FastifyStore = require("@fastify/rate-limit/store/LocalStore.js")

/** The one that it makes where it is given a client. */
export const FastifyRedisStore: new (
  continueExceeding: boolean,
  exponentialBackoff: boolean,
  client: unknown,
) => FastifyStore = require("@fastify/rate-limit/store/RedisStore.js")

/** Counts one request as the plugin does it; resolves with whether it is within the limit. */
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

/** What koa-ratelimit makes for each request. */
interface KoaLimiter {
  get(): Promise<{ readonly remaining: number }>
}
type KoaLimiterClass = new (options: {
  readonly id: string
  readonly db: unknown
  readonly max: number
  readonly duration: number
}) => KoaLimiter

/** With `driver: "memory"`; `db` is a Map. */
export const KoaMemoryLimiter: KoaLimiterClass = require("koa-ratelimit/limiter/memory.js")

/** With `driver: "redis"`; `db` is a client by ioredis. */
export const KoaRedisLimiter: KoaLimiterClass = require("koa-ratelimit/limiter/redis.js")
