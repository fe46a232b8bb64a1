import { type Logger, type MemoryStoreOptions, memoryStore, type Rule, type Store } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import type { AppSetup } from "../app.ts"
import type { connectRedis } from "./redis-client.ts"

/** The options that the author of an app chooses. */
export interface SluiceOptions {
  readonly service: string
  readonly rules: Rule<unknown>[]
  readonly trustedProxies: number
  readonly store: Store
  readonly storeTimeoutMs: number
  readonly logger: Logger
}

/** Drops the log line about an outage, because no drill examines it. */
const SILENT: Logger = { warn() {}, error() {} }

// The options follow README.md and docs/production/redis.md of this project. All other options have their defaults.
export function optionsOf(
  { limits, maxKeys, storeTimeoutMs }: AppSetup,
  client: Awaited<ReturnType<typeof connectRedis>>,
  algorithm?: "sliding-window-strict",
): SluiceOptions {
  const memory: MemoryStoreOptions = maxKeys === undefined ? {} : { maxKeys }
  return {
    service: "drill",
    rules: limits.map(({ limit, windowMs }) => ({
      limit,
      window: windowMs,
      field: "ip",
      ...(algorithm === undefined ? {} : { algorithm }),
    })),
    trustedProxies: 1,
    store: client === undefined ? memoryStore(memory) : redisStore({ client }),
    storeTimeoutMs,
    logger: SILENT,
  }
}
