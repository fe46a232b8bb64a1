import { memoryStore, type Store } from "@sluice/core"
import type {
  Check,
  CounterKey,
  Policy,
  Refund,
  StoreEvent,
  StoreReading,
  StoreResult,
} from "@sluice/core/stores"
import { type ManualClock, manualClock } from "@sluice/core/testing"
import { methodsOf } from "../../../../core/src/stores/testing/methods-of.ts"
import { mirroredStore } from "../mirrored-store.ts"
import type { MirroredStoreOptions } from "../options.ts"

/** A limit of 10 a minute for each user. */
export const USER: Policy = {
  ...{ name: "user", counter: "user", algorithm: "sliding-window-strict", align: "epoch" },
  ...{ limit: 10, windowMs: 60_000, buckets: 60 },
}

/** Returns a check of a user. */
export function check(cost = 1, more: Partial<Check> = {}): Check {
  return { policy: USER, partition: "ann", cost, shadow: false, ...more }
}

/** A function that replaces calls to a store. */
export type Fault = () => Promise<void>

/** A data center, with its store and the mirrored store of one of its processes. */
export interface DataCenter {
  readonly shared: Store
  readonly store: Store
  readonly events: StoreEvent[]
  /** The calls that other data centers made. */
  readonly charges: (readonly Refund[])[]
  readonly resets: (readonly CounterKey[])[]
  /** If set, the calls of other data centers fail. */
  fault: Fault | undefined
  take(...checks: Check[]): StoreResult
  /** Returns the units of a counter. */
  counted(policy?: Policy, partition?: string): number
}

/** Creates the data centers "a", "b", and so on, which mirror each other. The data centers share a clock. */
export function dataCenters(
  number: number,
  options: Partial<MirroredStoreOptions> = {},
): { readonly clock: ManualClock; readonly centers: readonly DataCenter[]; pass(ms: number): Promise<void> } {
  const clock = manualClock(Date.UTC(2024, 0, 1))
  const names = [..."abcdefgh"].slice(0, number)
  const centers: DataCenter[] = []
  const memories = names.map(() => Object.assign(memoryStore({ clock }), { isShared: true }))
  names.forEach((_, near) => {
    const far = names.flatMap((name, i) => (i === near ? [] : [[name, farStore(i)] as const]))
    centers.push(dataCenter(memories[near] as Store, Object.fromEntries(far)))
  })

  function farStore(i: number): Store {
    const center = () => centers[i] as DataCenter
    const memory = memories[i] as Store
    return {
      ...methodsOf(memory),
      isShared: true,
      async refund(refunds) {
        center().charges.push(refunds)
        await center().fault?.()
        await memory.refund(refunds)
      },
      async reset(keys) {
        center().resets.push(keys)
        await center().fault?.()
        await memory.reset(keys)
      },
    }
  }

  function dataCenter(shared: Store, far: Record<string, Store>): DataCenter {
    const store = mirroredStore({ near: shared, far, clock, ...options })
    const events: StoreEvent[] = []
    store.subscribe?.((event) => events.push(event))
    return {
      ...{ shared, store, events, charges: [], resets: [], fault: undefined },
      take: (...checks) => store.take(checks) as StoreResult,
      counted(policy = USER, partition = "ann") {
        const reading = shared.read([{ policy, partition, cost: 0, shadow: false }])
        const state = (reading as StoreReading).counters[0]?.state
        return (state?.current ?? 0) + (state?.previous ?? 0)
      },
    }
  }

  async function pass(ms: number): Promise<void> {
    clock.advance(ms)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { clock, centers, pass }
}
