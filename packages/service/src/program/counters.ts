import { memoryStore, type Store } from "@sluice/core"
import { falseAfter } from "../deadlines.ts"
import type { Log } from "./log.ts"
import { answers, createRedisClient, type ServiceRedis } from "./redis-client.ts"
import type { RedisSettings } from "./settings.ts"

/** The store that counts requests. */
export interface CounterStore {
  readonly kind: "memory" | "redis"
  readonly store: Store
  /** Resolves with true if the store answers now. Never rejects. */
  isReachable(): Promise<boolean>
  close(): Promise<void>
}

/**
 * Opens the counters in Redis, or in the memory of this process. The Redis client library is only loaded if needed.
 * Operations that no decision waits for, such as refunds, have the same timeout as a decision: `storeTimeoutMs`.
 */
export async function openCounters(
  redis: RedisSettings | undefined,
  storeTimeoutMs: number,
  log: Log,
): Promise<CounterStore> {
  if (redis !== undefined) return openRedis(redis, storeTimeoutMs, log)
  const store = memoryStore()
  return {
    kind: "memory",
    store,
    isReachable: () => Promise.resolve(true),
    close: async () => store.close(),
  }
}

/** Timeout of a health check of Redis, in milliseconds. */
const LOOK_MS = 1_000

async function openRedis(settings: RedisSettings, timeoutMs: number, log: Log): Promise<CounterStore> {
  const { redisStore } = await import("@sluice/core/redis")
  const client = await createRedisClient(settings)
  logConnection(client, log)
  const store = redisStore({ client, prefix: settings.prefix, timeoutMs })
  let looking: Promise<boolean> | undefined
  return {
    kind: "redis",
    store,
    isReachable() {
      // Concurrent calls share one health check. A client that is not connected would queue the check, so return false
      // at once.
      if (client.status !== "ready") return Promise.resolve(false)
      looking ??= falseAfter(
        LOOK_MS,
        answers(client).catch(() => false),
      ).finally(() => {
        looking = undefined
      })
      return looking
    },
    async close() {
      await store.close()
      client.disconnect()
    },
  }
}

/** An error, with the command that failed if there is one. */
interface RedisError extends Error {
  readonly command?: { readonly name: string }
}

/**
 * Logs a line when the connection is lost or cannot be established, and a line when it is back. The client retries all
 * the time.
 */
function logConnection(client: ServiceRedis, log: Log): void {
  let isGone = false
  client.on("error", (err: RedisError) => {
    // The connection stays open, and ioredis continues with database 0.
    if (err.command?.name === "select") {
      log.error(
        { err },
        "Redis refuses the database of REDIS_URL, so requests are counted in database 0. Correct the database number, or allow SELECT.",
      )
      return
    }
    if (!isGone)
      log.warn(
        { err },
        "There is no connection to Redis. The service keeps trying; check Redis and REDIS_URL.",
      )
    isGone = true
  })
  client.on("ready", () => {
    if (isGone) log.info("Connected to Redis again.")
    isGone = false
  })
}
