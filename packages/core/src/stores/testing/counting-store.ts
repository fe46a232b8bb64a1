import type { Store } from "../store.ts"
import { methodsOf } from "./methods-of.ts"

/** Returns a store that counts its calls and the units that are refunded. */
export function countingStore(inner: Store): {
  readonly store: Store
  readonly calls: { takes: number; reads: number; returned: number }
} {
  const calls = { takes: 0, reads: 0, returned: 0 }
  const store: Store = {
    ...methodsOf(inner),
    take(checks, withinMs) {
      calls.takes++
      return inner.take(checks, withinMs)
    },
    read(checks, withinMs) {
      calls.reads++
      return inner.read(checks, withinMs)
    },
    refund(refunds, withinMs) {
      for (const { units } of refunds) calls.returned += units
      return inner.refund(refunds, withinMs)
    },
  }
  return { store, calls }
}
