import type { Store } from "@sluice/core"
import { Leases } from "./leases.ts"
import { type LeasedStoreOptions, parseOptions } from "./options.ts"

export type { LeasedStoreOptions } from "./options.ts"

/**
 * Creates a store in front of a store that processes share. For large limits, it books units ahead of time and grants
 * requests from them without asking the shared store. No limit is exceeded, because a lease ends with the window or
 * sub-window in which its units were booked. The guide "Scale" lists the exceptions. With a token bucket that refills
 * evenly, any window may admit up to 5 % of the limit in addition.
 *
 * A refusal comes from the shared store, or repeats its latest refusal for at most half of `leaseMs`. All checks of a
 * request are admitted and counted, or nothing is taken. No request waits for a reservation. Unused units are refunded
 * after `leaseMs`. If a process is killed, the units that it holds stay taken until their window has passed. The
 * shared store decides rules with `concurrent`, because permits are never leased.
 *
 * `close` refunds the held units, and then closes the shared store.
 * @example
 * ```ts
 * import { createLimiter } from "@sluice/core"
 * import { leasedStore } from "@sluice/scale"
 * import { redisStore } from "@sluice/redis"
 * import { Redis } from "ioredis"
 *
 * const client = new Redis(process.env.REDIS_URL ?? "redis://localhost:6379")
 * const store = leasedStore(redisStore({ client }))
 * const limiter = createLimiter({ service: "checkout", limit: 1_000_000, window: "1 minute", store })
 * ```
 * @throws {@link InvalidOptionError} if an option is invalid, or the store is not shared or already leased
 */
export function leasedStore(store: Store, options: LeasedStoreOptions = {}): Store {
  return new Leases(store, parseOptions(store, options))
}
