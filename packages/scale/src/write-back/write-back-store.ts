import type { Store } from "@sluice/core"
import { parseOptions, type WriteBackStoreOptions } from "./options.ts"
import { WriteBacks } from "./write-backs.ts"

export type { WriteBackStoreOptions } from "./options.ts"

/**
 * Creates a store in front of a store that processes share. No request waits for the shared store, because this
 * process decides by the latest count that it has read and by its own units. It charges its own units to the shared
 * store after `settleMs`, and then reads the units that other processes have used.
 *
 * A client whose requests all go to the same process is counted exactly. For other clients, the guide "Scale" states
 * the bound. Units above the limit reduce the units that are admitted later. If a process is killed, the units that
 * it has not yet charged are lost.
 *
 * `sliding-log`, `leaky-bucket`, and rules with `concurrent`, `countRejected` or a `penalty` are passed on to the
 * shared store. A request with both kinds of rules waits for the shared store. Such a request takes the units of all
 * its rules, or nothing.
 *
 * While the shared store does not respond, each process first admits the units that remained at its latest
 * settlement. In each later window, it admits the limit, or its share of the limit. After three failed settlements,
 * or 1.2 seconds without a reply, its decisions are `degraded`. `close` charges the pending units, and then closes
 * the shared store.
 * @example
 * ```ts
 * import { createLimiter } from "@sluice/core"
 * import { writeBackStore } from "@sluice/scale"
 * import { redisStore } from "@sluice/redis"
 * import { Redis } from "ioredis"
 *
 * const client = new Redis(process.env.REDIS_URL ?? "redis://localhost:6379")
 * const store = writeBackStore(redisStore({ client }))
 * const limiter = createLimiter({ service: "checkout", limit: 100, window: "1 minute", store })
 * ```
 * @throws {@link InvalidOptionError} if an option is invalid, or the store is not shared or already written back
 */
export function writeBackStore(store: Store, options: WriteBackStoreOptions = {}): Store {
  return new WriteBacks(store, parseOptions(store, options))
}
