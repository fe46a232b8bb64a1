import { type ManualClock, manualClock, memoryStore, type Store } from "@sluice/core"
import type { Check, Policy, Refund } from "@sluice/core/stores"

/** A rule of the whole service, with a limit of 16,000 a minute. */
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

/** A memory store that says that it is shared, with the calls that it gets. */
export interface SharedMemory {
  readonly shared: Store
  readonly clock: ManualClock
  readonly calls: {
    readonly takes: (readonly Check[])[]
    readonly reads: (readonly Check[])[]
    readonly refunds: Refund[]
  }
  /** Returns the units of a counter in the shared store. */
  counted(policy?: Policy, partition?: string): number
}

/** Creates a shared store. `over` replaces its methods. */
export function sharedMemory(over: Partial<Store> = {}): SharedMemory {
  const clock = manualClock()
  const memory = memoryStore({ clock })
  const calls: SharedMemory["calls"] = { takes: [], reads: [], refunds: [] }
  const shared: Store = {
    isShared: true,
    take(checks) {
      calls.takes.push(checks)
      return memory.take(checks)
    },
    read(checks) {
      calls.reads.push(checks)
      return memory.read(checks)
    },
    refund(refunds) {
      calls.refunds.push(...refunds)
      memory.refund(refunds)
    },
    reset: (keys) => memory.reset(keys),
    close: () => memory.close(),
    ...over,
  }
  return {
    shared,
    clock,
    calls,
    counted(policy = SERVICE, partition = "") {
      const { counters } = memory.read([{ policy, partition, cost: 0, shadow: false }])
      const { current = 0, previous = 0 } = counters[0]?.state ?? {}
      // A bucket has the rest of a unit in `previous`.
      return current + (policy.algorithm === "token-bucket" ? Math.min(1, previous) : previous)
    },
  }
}
