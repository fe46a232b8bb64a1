import type { Store } from "@sluice/core"
import { parseOptions, type WriteBackStoreOptions } from "./options.ts"
import { WriteBacks } from "./write-backs.ts"

export type { WriteBackStoreOptions } from "./options.ts"

/**
 * Creates a store in front of a store that processes share. No request waits for the shared store: this process decides
 * by the count that it last knew and by its own units. The process charges those units to the shared store after
 * `settleMs`, and then learns what other processes have used.
 *
 * A client that always reaches the same process is counted exactly. For others, the guide "Scale" gives the bound. Units
 * above the limit are worked off later. A process that is killed forgets what it has not charged yet.
 *
 * `sliding-log`, `leaky-bucket`, and rules with `countRejected` or a `penalty` are passed on to the shared store. A
 * request that has both kinds of rules waits for the shared store. Such a request takes the units of all its rules, or
 * nothing.
 *
 * While the shared store does not respond, each process first admits what it last knew to be left. In each later
 * window, it admits the limit, or its share of it. After three failed settlements, or 1.2 seconds without a reply, its
 * decisions are `degraded`. `close` charges what is pending, and then closes the shared store.
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
