import type { Logger, MemoryStoreOptions, Rule, Store } from "@sluice/core"
import { memoryStore } from "@sluice/core"
import { redisStore } from "@sluice/core/redis"
import type { AppSetup } from "../app.ts"
import type { connectRedis } from "./redis-client.ts"

/** What an app has from its author: the rules, the proxy in front of it, and where it counts. */
export interface SluiceOptions {
  readonly service: string
  readonly rules: Rule<unknown>[]
  readonly trustedProxies: number
  readonly store: Store
  readonly storeTimeoutMs: number
  readonly logger: Logger
}

/** An outage is logged once, which is not what a drill looks at. */
const SILENT: Logger = { warn() {}, error() {} }

// As in README.md and docs/guides/redis.md of this project; all else as it is by default.
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
