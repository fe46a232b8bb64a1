/**
 * Counters in Redis, shared by every process that uses the same server or cluster. docs/guides/redis.md says what to run and
 * what happens when it is gone.
 * @module @sluice/core/redis
 */

export type { RedisClient } from "./stores/redis/clients/commands-of.ts"
export { type RedisStoreOptions, redisStore } from "./stores/redis/redis-store.ts"
