import type { Imports } from "./program.ts"

/** The code with which an app creates a Redis client. */
interface RedisClient {
  readonly client: string
  readonly imports: Imports
  readonly open: string
  readonly close: string
}

export const REDIS_CLIENTS: readonly RedisClient[] = [
  {
    client: "ioredis",
    // Version 5.0 exports the client only as the default.
    imports: { ioredis: ["default as Redis"] },
    open: "const client = new Redis(process.env.REDIS_URL)",
    close: "await client.quit()",
  },
  {
    client: "redis",
    imports: { redis: ["createClient"] },
    open: "const client = await createClient({ url: process.env.REDIS_URL }).connect()",
    close: "await client.close()",
  },
]

/**
 * Makes three requests and prints the results. The limit is two a day by an exact log, so the next process still
 * counts the units at any time of day. The timeout is long, because this test does not check timeouts.
 */
export const COUNT_IN_REDIS = `
const limiter = createLimiter({
  service: "packages",
  limit: 2,
  window: "1 day",
  algorithm: "sliding-log",
  store: redisStore({ client, prefix: process.env.PREFIX }),
  storeTimeoutMs: 60_000,
})
const answers = []
for (let asked = 0; asked < 3; asked++) {
  const { allowed, degraded } = await limiter.decide({ remoteAddress: "192.0.2.7" })
  answers.push(degraded ? "degraded" : allowed)
}
console.log(JSON.stringify(answers))
await limiter.close()`
