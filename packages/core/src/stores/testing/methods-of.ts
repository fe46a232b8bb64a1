import type { Store } from "../store.ts"

/** Returns the methods of a store, for a store that overrides some of them: `{ ...methodsOf(store), take: … }`. */
export function methodsOf(store: Store): Store {
  return {
    take: (checks, withinMs) => store.take(checks, withinMs),
    read: (checks, withinMs) => store.read(checks, withinMs),
    refund: (refunds, withinMs) => store.refund(refunds, withinMs),
    reset: (keys, withinMs) => store.reset(keys, withinMs),
    close: () => store.close(),
  }
}
