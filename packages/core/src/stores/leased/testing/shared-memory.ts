import { type ManualClock, manualClock } from "../../../ground/clock.ts"
import type { Policy } from "../../../ground/policy.ts"
import { memoryStore } from "../../memory/memory-store.ts"
import type { Check, Refund, Store, StoreResult } from "../../store.ts"
import { leasedStore } from "../leased-store.ts"
import type { LeasedStoreOptions } from "../options.ts"

/** A limit of 16,000 a minute, so at most 1,000 units are booked at once. T is 1 s. */
export const SERVICE: Policy = {
  name: "service",
  counter: "service",
  algorithm: "sliding-window",
  limit: 16_000,
  windowMs: 60_000,
  align: "epoch",
}

/** Returns a check of the whole service. */
export function check(cost = 1, more: Partial<Check> = {}): Check {
  return { policy: SERVICE, partition: "", cost, shadow: false, ...more }
}

/** A leased store over a memory store that says that it is shared, with the calls that the memory store gets. */
export interface Leased {
  readonly store: Store
  readonly shared: Store
  readonly clock: ManualClock
  readonly calls: { readonly takes: (readonly Check[])[]; readonly refunds: Refund[] }
  /** Takes for one request. */
  take(...checks: Check[]): StoreResult
  /** Returns the units of a counter in the shared store. */
  counted(policy?: Policy): number
}

/** Creates a leased store. `over` replaces methods of the shared store. */
export function leased(options: LeasedStoreOptions = {}, over: Partial<Store> = {}): Leased {
  const clock = manualClock()
  const memory = memoryStore({ clock })
  const calls = { takes: [] as (readonly Check[])[], refunds: [] as Refund[] }
  const shared: Store = {
    isShared: true,
    take(requests) {
      calls.takes.push(...requests)
      return memory.take(requests)
    },
    peek: (requests) => memory.peek(requests),
    refund(refunds) {
      calls.refunds.push(...refunds)
      memory.refund(refunds)
    },
    reset: (keys) => memory.reset(keys),
    close: () => memory.close(),
    ...over,
  }
  const store = leasedStore(shared, { clock, ...options })
  return {
    store,
    shared,
    clock,
    calls,
    take(...checks) {
      return (store.take([checks]) as readonly StoreResult[])[0] as StoreResult
    },
    counted(policy = SERVICE) {
      const [answer] = memory.peek([[{ policy, partition: "", cost: 0, shadow: false }]])
      const { current, previous } = (answer as StoreResult).checks[0]?.state ?? { current: 0, previous: 0 }
      return current + previous
    },
  }
}
