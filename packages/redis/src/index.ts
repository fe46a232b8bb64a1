/**
 * Counters in Redis, shared by every process that uses the same server or cluster. docs/production/redis.md describes the
 * setup and the behavior when Redis is unavailable.
 * @module @sluice/redis
 */

export type { RedisClient } from "./clients/commands-of.ts"
export { type RedisOverHttp, type RedisOverHttpOptions, redisOverHttp } from "./clients/redis-over-http.ts"
export { redisKey } from "./key.ts"
export {
  type RedisActivity,
  type RedisActivityOptions,
  type RedisActivityReply,
  redisActivity,
} from "./redis-activity.ts"
export { type RedisStoreOptions, redisStore } from "./redis-store.ts"
