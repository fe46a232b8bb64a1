export { type RedisStoreOptions, redisStore } from "./stores/redis/redis-store.ts"
