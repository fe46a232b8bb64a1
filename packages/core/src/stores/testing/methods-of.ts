import type { Store } from "../store.ts"

/** Returns the methods of a store, for a store that overrides some of them: `{ ...methodsOf(store), take: … }`. */
export function methodsOf(store: Store): Store {
  return {
    take: (requests, withinMs) => store.take(requests, withinMs),
    peek: (requests, withinMs) => store.peek(requests, withinMs),
    refund: (refunds, withinMs) => store.refund(refunds, withinMs),
    reset: (keys, withinMs) => store.reset(keys, withinMs),
    close: () => store.close(),
  }
}
