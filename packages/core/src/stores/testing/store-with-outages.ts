import type { Store } from "../store.ts"

/** Returns a store that counts in the given store, and whose calls throw while `isDown`. */
export function storeWithOutages(counters: Store): { readonly store: Store; isDown: boolean } {
  const outages = { store: undefined as unknown as Store, isDown: false }
  const unlessDown = (): Store => {
    if (outages.isDown) throw new Error("down")
    return counters
  }
  outages.store = {
    take: (checks, withinMs) => unlessDown().take(checks, withinMs),
    read: (checks, withinMs) => unlessDown().read(checks, withinMs),
    refund: (refunds, withinMs) => unlessDown().refund(refunds, withinMs),
    reset: (keys, withinMs) => unlessDown().reset(keys, withinMs),
    close: () => undefined,
  }
  return outages
}
