import type { Store } from "@sluice/core"
import type { Check, StoreResult } from "@sluice/core/stores"
import { type SharedMemory, sharedMemory } from "../../testing/shared-memory.ts"
import { leasedStore } from "../leased-store.ts"
import type { LeasedStoreOptions } from "../options.ts"

/** A leased store over a shared memory store. At most 1,000 units of its service rule are booked at once. T is 1 s. */
export interface Leased extends SharedMemory {
  readonly store: Store
  /** Takes for one request. */
  take(...checks: Check[]): StoreResult
}

/** Creates a leased store. `over` replaces methods of the shared store. */
export function leased(options: LeasedStoreOptions = {}, over: Partial<Store> = {}): Leased {
  const memory = sharedMemory(over)
  const store = leasedStore(memory.shared, { clock: memory.clock, ...options })
  return {
    ...memory,
    store,
    take(...checks) {
      return store.take(checks) as StoreResult
    },
  }
}
