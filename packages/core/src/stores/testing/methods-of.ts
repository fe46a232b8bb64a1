import type { Store } from "../store.ts"

/** Returns the methods of a store, so that a test can override some of them: `{ ...methodsOf(store), take: … }`. */
export function methodsOf(store: Store): Store {
  return {
    take: (checks, withinMs) => store.take(checks, withinMs),
    read: (checks, withinMs) => store.read(checks, withinMs),
    refund: (refunds, withinMs) => store.refund(refunds, withinMs),
    reset: (keys, withinMs) => store.reset(keys, withinMs),
    close: () => store.close(),
  }
}
