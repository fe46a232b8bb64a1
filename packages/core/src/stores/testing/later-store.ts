import { memoryStore } from "../memory/memory-store.ts"
import type { Store } from "../store.ts"
import { methodsOf } from "./methods-of.ts"

/**
 * Returns a store that takes units in a later turn of the event loop, as stores over the network do. Default: a new
 * memory store takes the units.
 */
export function laterStore(store: Store = memoryStore()): Store {
  return { ...methodsOf(store), take: async (checks, withinMs) => store.take(checks, withinMs) }
}
