import { Redis } from "ioredis"
import { beforeEach } from "vitest"
import { type RedisForTests, redisForTests } from "../../servers/redis-for-tests.ts"

/** Starts a Redis for the tests of a file, and empties it before each test. */
export async function emptyRedis(): Promise<RedisForTests> {
  const redis = await redisForTests()
  beforeEach(() => redis.server.command("FLUSHALL"))
  return redis
}

/** Returns a client that has been closed, so that each command fails immediately. */
export async function closedClient({ server }: RedisForTests): Promise<Redis> {
  const client = new Redis(server.port, server.host)
  await client.quit()
  return client
}
