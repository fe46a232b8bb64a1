/**
 * A store for express-rate-limit that counts with Sluice, in Redis or in memory.
 * @module @sluice/express-rate-limit-store
 */

export type { SluiceStoreOptions } from "./options.ts"
export { SluiceStore } from "./sluice-store.ts"
