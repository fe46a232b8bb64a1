import { memoryStore, type Store } from "@sluice/core"
import { beforeDeadline } from "@sluice/core/kit"
import type { CounterKey } from "@sluice/core/stores"
import type { ActivityBoard } from "@sluice/dashboard"
import { leasedStore, mirroredStore, writeBackStore } from "@sluice/scale"
import type { Log } from "./log.ts"
import { answers, createRedisClient, type ServiceRedis } from "./redis-client.ts"
import type { Settings } from "./settings/settings-table.ts"

/** The store that counts requests. */
export interface CounterStore {
  readonly kind: "memory" | "redis"
  readonly store: Store
  /** Returns the key of a counter in Redis. Absent if the counters are in memory. */
  readonly keyOf?: (counter: CounterKey) => string
  /** Where the instances exchange what they have recorded. Absent if the counters are in memory. */
  readonly board?: ActivityBoard
  /** Resolves with true if the store currently responds. Never rejects. */
  isReachable(): Promise<boolean>
  close(): Promise<void>
}

/** The settings that choose and configure the store of counters. */
export type CounterSettings = Pick<
  Settings,
  | ("redis" | "redisCluster" | "redisPrefix" | "mirrors" | "lease" | "writeBackMs")
  | ("storeTimeoutMs" | "instances")
>

/**
 * Opens the counters in Redis, or in the memory of this process. The Redis client library is only loaded if needed.
 * Operations that no decision waits for, such as refunds, have the same timeout as a decision: `storeTimeoutMs`.
 */
export async function openCounters(settings: CounterSettings, log: Log): Promise<CounterStore> {
  if (settings.redis !== undefined) return openRedis(settings.redis, settings, log)
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

async function openRedis(
  urls: readonly string[],
  settings: CounterSettings,
  log: Log,
): Promise<CounterStore> {
  const { redisActivity, redisKey, redisStore } = await import("@sluice/redis")
  const { redisCluster: isCluster, redisPrefix: prefix = "", mirrors = {} } = settings
  const { lease, writeBackMs: settleMs, storeTimeoutMs: timeoutMs, instances } = settings
  const client = await createRedisClient(urls, isCluster)
  logConnection(client, log, "Redis", "REDIS_URL")
  const clients = [client]
  const far = new Map<string, Store>()
  for (const [name, others] of Object.entries(mirrors)) {
    const other = await createRedisClient(others, isCluster)
    logConnection(other, log, `the Redis of the data center "${name}"`, "SLUICE_MIRRORS")
    clients.push(other)
    far.set(name, redisStore({ client: other, prefix }))
  }
  let store: Store = redisStore({ client, prefix, timeoutMs })
  if (far.size > 0) store = mirroredStore({ near: store, far: Object.fromEntries(far) })
  if (lease) store = leasedStore(store)
  if (settleMs !== undefined) store = writeBackStore(store, { settleMs, instances })
  let looking: Promise<boolean> | undefined
  return {
    kind: "redis",
    store,
    keyOf: (counter) => redisKey(counter, prefix),
    board: redisActivity({ client, prefix }),
    isReachable() {
      // Concurrent calls share one health check. A client that is not connected would queue the check, so return false
      // immediately.
      if (client.status !== "ready") return Promise.resolve(false)
      looking ??= beforeDeadline(
        answers(client).catch(() => false),
        LOOK_MS,
        () => false,
      ).finally(() => {
        looking = undefined
      })
      return looking
    },
    async close() {
      await store.close()
      for (const one of clients) one.disconnect()
    },
  }
}

/** An error of the Redis client. `command` is absent if no command failed. */
interface RedisError extends Error {
  readonly command?: { readonly name: string }
}

/**
 * Logs a line when the connection to `redis` is lost or cannot be established, and a line when it is back. The client
 * retries forever. `setting` is the name of the setting that contains the URL of Redis.
 */
function logConnection(client: ServiceRedis, log: Log, redis: string, setting: string): void {
  let isGone = false
  client.on("error", (err: RedisError) => {
    // The connection stays open, and ioredis continues with database 0.
    if (err.command?.name === "select") {
      log.error(
        { err },
        `Redis refuses the database of ${setting}, so requests are counted in database 0. Correct the database number, or allow SELECT.`,
      )
      return
    }
    if (!isGone)
      log.warn(
        { err },
        `There is no connection to ${redis}. The service keeps trying; check Redis and ${setting}.`,
      )
    isGone = true
  })
  client.on("ready", () => {
    if (isGone) log.info(`Connected to ${redis} again.`)
    isGone = false
  })
}
