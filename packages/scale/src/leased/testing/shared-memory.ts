import type { Store } from "@sluice/core"
import type { Check, StoreResult } from "@sluice/core/stores"
import { type Fault, type Network, type SharedMemory, sharedMemory } from "../../testing/shared-memory.ts"
import { leasedStore } from "../leased-store.ts"
import type { LeasedStoreOptions } from "../options.ts"

/**
 * A leased store over a shared memory store. At most 1,000 units of its service rule are booked at the same time. T is
 * 1 s.
 */
export interface Leased extends SharedMemory {
  readonly store: Store
  /** Takes units for one request. */
  take(...checks: Check[]): StoreResult
  /** Lets calls of the shared store fail. */
  fail(fault: Fault): void
}

/** Creates a leased store. `over` replaces methods of the shared store. */
export function leased(
  options: LeasedStoreOptions = {},
  network: Network = {},
  over: Partial<Store> = {},
): Leased {
  const memory = sharedMemory(over, network)
  const store = leasedStore(memory.shared, { clock: memory.clock, ...options })
  return {
    ...memory,
    store,
    take: (...checks) => store.take(checks) as StoreResult,
    fail(fault) {
      memory.fault = fault
    },
  }
}
