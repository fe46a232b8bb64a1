/**
 * Stores in front of a shared store, for limits that one store cannot count alone: leases for hot counters, mirrors
 * for several data centers, and counters that are written back. docs/scale/stores.md helps to choose among them.
 * @module @sluice/scale
 */

export { type LeasedStoreOptions, leasedStore } from "./leased/leased-store.ts"
export { type MirroredStoreOptions, mirroredStore } from "./mirrored/mirrored-store.ts"
export { type WriteBackStoreOptions, writeBackStore } from "./write-back/write-back-store.ts"
