import { memoryStore, type Store } from "@sluice/core"
import type { Check, CounterKey, Policy, Refund } from "@sluice/core/stores"
import { type ManualClock, manualClock } from "@sluice/core/testing"

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

/** Waits until all promises that do not wait for a clock have settled. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 40; i++) await undefined
}

type Method = "take" | "read" | "refund" | "reset"

/** The faults and delays of calls of the shared store. */
export interface Network {
  /** Methods whose calls are applied when the test calls `answer`. */
  readonly slow?: readonly Method[]
  /** Methods whose calls are applied immediately, but whose reply waits until the test calls `answer`. */
  readonly late?: readonly Method[]
  /** Methods that fail with the fault, if a fault is set. Default: all. */
  readonly failing?: readonly Method[]
}

/** Responds to a call for these counters instead of the shared store. Returns undefined if the store must respond. */
export type Fault = (keys: readonly CounterKey[]) => unknown

/** Returns a fault with which all calls fail. */
export function rejecting(error: Error): Fault {
  return () => Promise.reject(error)
}

/** A memory store that claims to be shared, and that records its calls. */
export interface SharedMemory {
  readonly shared: Store
  readonly clock: ManualClock
  readonly calls: {
    readonly takes: (readonly Check[])[]
    readonly reads: (readonly Check[])[]
    readonly refunds: Refund[]
    /** All calls except calls of `take` and `read`: "refund -4", "reset", "close". */
    readonly order: string[]
  }
  /** The store as other processes use it. */
  readonly others: Store
  /** A function that replaces calls of the store. */
  fault: Fault | undefined
  /** The replies of waiting calls, the oldest first. */
  readonly waiting: (() => void)[]
  /** Responds to the oldest waiting call, and lets promises settle. */
  answer(): Promise<void>
  /** Returns the units of a counter in the shared store. */
  counted(policy?: Policy, partition?: string): number
}

/** Creates a shared store. `over` replaces its methods. */
export function sharedMemory(over: Partial<Store> = {}, network: Network = {}): SharedMemory {
  const { slow = [], late = [], failing } = network
  const clock = manualClock()
  const memory = memoryStore({ clock })
  const waiting: (() => void)[] = []
  const calls: SharedMemory["calls"] = { takes: [], reads: [], refunds: [], order: [] }

  function call<Answer>(method: Method, keys: readonly CounterKey[], work: () => Answer): Answer {
    const done = (): Answer => {
      const answer = failing?.includes(method) === false ? undefined : world.fault?.(keys)
      return answer === undefined ? work() : (answer as Answer)
    }
    const whenAsked = (answer: () => Answer): Answer =>
      new Promise((resolve) => waiting.push(() => resolve(answer()))) as Answer
    if (slow.includes(method)) return whenAsked(done)
    const answer = done()
    return late.includes(method) ? whenAsked(() => answer) : answer
  }
  const shared: Store = {
    isShared: true,
    take(checks) {
      calls.takes.push(checks)
      return call("take", checks, () => memory.take(checks))
    },
    read(checks) {
      calls.reads.push(checks)
      return call("read", checks, () => memory.read(checks))
    },
    refund(refunds) {
      calls.refunds.push(...refunds)
      calls.order.push(...refunds.map(({ units }) => `refund ${units}`))
      return call("refund", refunds, () => memory.refund(refunds))
    },
    reset(keys) {
      calls.order.push("reset")
      return call("reset", keys, () => memory.reset(keys))
    },
    close() {
      calls.order.push("close")
      return memory.close()
    },
    ...over,
  }
  const world: SharedMemory = {
    shared,
    clock,
    calls,
    others: memory,
    fault: undefined,
    waiting,
    answer() {
      waiting.shift()?.()
      return settle()
    },
    counted(policy = SERVICE, partition = "") {
      const { counters } = memory.read([{ policy, partition, cost: 0, shadow: false }])
      const { current = 0, previous = 0 } = counters[0]?.state ?? {}
      // A bucket stores the fraction of a unit in `previous`.
      return current + (policy.algorithm === "token-bucket" ? Math.min(1, previous) : previous)
    },
  }
  return world
}
