/**
 * Counters in Redis, shared by every process that uses the same server or cluster. docs/guides/redis.md describes the
 * setup and the behavior when Redis is unavailable.
 * @module @sluice/core/redis
 */

export type { RedisClient } from "./stores/redis/clients/commands-of.ts"
export { redisKey } from "./stores/redis/key.ts"
export { type RedisStoreOptions, redisStore } from "./stores/redis/redis-store.ts"
