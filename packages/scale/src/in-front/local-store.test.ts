import { type Clock, memoryStore, type Store, StoreUnavailableError } from "@sluice/core"
import type { Policy, Refund, StoreEvent, StoreResult } from "@sluice/core/stores"
import { manualClock } from "@sluice/core/testing"
import { describe, expect, it } from "vitest"
import { leasedStore } from "../leased/leased-store.ts"
import { mirroredStore } from "../mirrored/mirrored-store.ts"
import {
  check,
  type Fault,
  type Network,
  rejecting,
  SERVICE,
  settle,
  sharedMemory,
} from "../testing/shared-memory.ts"
import { writeBackStore } from "../write-back/write-back-store.ts"

const SETTLE_MS = 100
const LOG: Policy = { ...SERVICE, name: "log", counter: "log", algorithm: "sliding-log", limit: 1 }
const KEYS = [{ policy: SERVICE, partition: "" }]
const GONE = new StoreUnavailableError("gone", { outcome: "not-applied" })

/** The stores with local counters. For each store, a function lets it send a refund or a charge. */
const STORES = [
  {
    title: "a leased store",
    open: (shared: Store, clock: Clock): Store => leasedStore(shared, { clock }),
    // Another limit ends the lease.
    settling: (store: Store) => void store.take([check(1, { policy: { ...SERVICE, limit: 8_000 } })]),
  },
  {
    title: "a store that writes back",
    open: (shared: Store, clock: Clock): Store => writeBackStore(shared, { clock, settleMs: SETTLE_MS }),
    settling: () => undefined,
  },
] as const

describe.each(STORES)("$title", ({ open, settling }) => {
  /** Opens a store that has granted 500 units of a local counter, and that may have booked another 500 units. */
  function world(network: Network = {}, over: Partial<Store> = {}) {
    const memory = sharedMemory(over, network)
    const { shared, clock } = memory
    const store = open(shared, clock)
    const warm = () => void store.take([check(500)])
    return {
      ...memory,
      store,
      warm,
      fail: (fault: Fault) => Object.assign(memory, { fault }),
      async settling() {
        settling(store)
        clock.advance(SETTLE_MS)
        await settle()
      },
      /** Returns the units that are in use according to this process. */
      used: () => (store.take([check(0)]) as StoreResult).checks[0]?.state.current,
    }
  }

  it.each<[string, Fault, string]>([
    [
      "throws",
      () => {
        throw GONE
      },
      "gone",
    ],
    ["rejects", rejecting(GONE), "gone"],
    ["is late", () => new Promise(() => {}), "did not respond within 5 ms"],
    ["answers with nonsense", () => ({ nowMs: 0, granted: true }), "invalid result"],
  ])("takes nothing if the shared store %s", async (_, fault, message) => {
    const { store, warm, fail, used } = world()
    warm()
    fail(fault)
    const asked = (async () => store.take([check(7), check(1, { policy: LOG })], 5))()
    await expect(asked).rejects.toThrow(message)
    expect(used()).toBe(500)
  })

  it("takes nothing if the shared store refuses the rest, and reports this", () => {
    const { store, warm, used } = world()
    warm()
    const ask = () => store.take([check(7), check(1, { policy: LOG })])
    expect(ask()).toMatchObject({ granted: true, checks: [{ taken: 7 }, { taken: 1 }] })
    expect(ask()).toMatchObject({
      granted: false,
      checks: [
        { taken: 0, state: { current: 507 } },
        { taken: 0, state: { current: 1 } },
      ],
    })
    expect(used()).toBe(507)
  })

  it("sends only the checks that local counters do not decide", () => {
    const { store, warm, calls } = world()
    warm()
    const rest = check(1, { policy: LOG, partition: "ann" })
    expect(store.take([rest, check()])).toMatchObject({
      granted: true,
      checks: [
        { taken: 1, state: { current: 1 } },
        { taken: 1, state: { current: 501 }, ageMs: 0 },
      ],
    })
    expect(calls.takes.at(-1)).toEqual([rest])
  })

  it("sends a rule with a penalty to the shared store, which counts the refusal", () => {
    const penalty = { refusals: 3, withinMs: 60_000, forMs: [60_000] }
    const request = [
      check(),
      check(1, { policy: { ...SERVICE, counter: "p", algorithm: "penalty", limit: 3, penalty } }),
    ]
    const { store, warm, calls } = world()
    warm()
    expect(store.take(request)).not.toHaveProperty("isRemembered")
    expect(calls.takes).toContainEqual(request)
  })

  it("reports an unknown outcome if a refund partly fails, so that no retry applies the other part twice", async () => {
    const { store, warm, fail, used } = world()
    warm()
    const answer = store.take([check(10), check(1, { policy: LOG })]) as StoreResult
    fail(rejecting(GONE))
    const refunds = [SERVICE, LOG].map((policy, i): Refund => {
      const { taken = 0, state, after = state } = answer.checks[i] ?? {}
      return { policy, partition: "", units: taken, after: after as Refund["after"] }
    })
    await expect(store.refund(refunds)).rejects.toMatchObject({ outcome: "unknown", cause: GONE })
    expect(used()).toBe(500)
    await expect(store.refund(refunds.slice(1))).rejects.toMatchObject({ outcome: "not-applied" })
  })

  it("waits for calls in flight before a reset, because they would change units of other processes", async () => {
    const { store, warm, settling: send, calls, answer } = world({ slow: ["refund"] })
    warm()
    await send()
    const done = store.reset(KEYS)
    await settle()
    expect(calls.order).toEqual([expect.stringMatching(/^refund -?500$/)])
    await answer()
    await done
    expect(calls.order.slice(1)).toEqual(["reset"])
  })

  it("drops units that were taken while the shared store deleted the counter", async () => {
    const { store, warm, answer, used } = world({ slow: ["reset"] })
    const done = store.reset(KEYS)
    warm()
    await answer()
    await done
    expect(used()).toBe(0)
  })

  it("settles all units when it is closed, after the calls in flight, and then closes the shared store", async () => {
    const { store, warm, settling: send, calls, answer, waiting } = world({ slow: ["refund"] })
    warm()
    await send()
    void store.take([check(300, { policy: { ...SERVICE, limit: 8_000 } })])
    const closed = store.close()
    await settle()
    expect(calls.order).not.toContain("close")
    while (waiting.length > 0) await answer()
    await closed
    expect(calls.order.length).toBe(3)
    expect(calls.order.at(-1)).toBe("close")
  })

  it("reports the condition and the events of the shared store", () => {
    const listeners = new Set<(event: StoreEvent) => void>()
    const status = { openBreakers: 2, recentRoundTripsMs: [1, 2] }
    const { store } = world(
      {},
      {
        status,
        subscribe: (listener) => {
          listeners.add(listener)
          return () => listeners.delete(listener)
        },
      },
    )
    expect(store).toMatchObject({ isShared: true, status })
    const events: StoreEvent[] = []
    const stop = store.subscribe?.((event) => events.push(event))
    const event = { type: "evicted", counters: 1, emptyAfterMs: 0, releaseAfterMs: 0 } as const
    for (const listener of listeners) listener(event)
    stop?.()
    expect([events, listeners.size]).toEqual([[event], 0])
  })
})

describe("the options of stores in front", () => {
  const shared = () => Object.assign(memoryStore(), { isShared: true })
  const near = shared()
  const far = { eu: shared() }

  it.each<[string, () => Store, string]>([
    ["not shared", () => leasedStore(memoryStore()), "store: is not shared"],
    ["of unknown use", () => leasedStore({ take() {} } as never), "does not say whether processes share it"],
    ["leased already", () => leasedStore(leasedStore(shared())), "store: is leased already"],
    ["leased behind", () => leasedStore(writeBackStore(shared())), "store: is written back; accepted"],
    ["written back", () => writeBackStore(writeBackStore(shared())), "store: is written back already"],
    ["not a store", () => writeBackStore({} as Store), "store: {} is not a store"],
    ["no store", () => leasedStore(undefined as never), "store: undefined is not a store"],
    ["a time", () => leasedStore(shared(), { leaseMs: 0.5 }), "leaseMs: 0.5 is not a valid time"],
    ["a time of 0", () => writeBackStore(shared(), { settleMs: 0 }), "settleMs: 0 is not a valid time"],
    ["a limit", () => leasedStore(shared(), { leastLimit: -1 }), "leastLimit: -1 is not a valid limit"],
    ["instances", () => writeBackStore(shared(), { instances: 0 }), "instances: 0 is not a valid number"],
    ["maxKeys", () => writeBackStore(shared(), { maxKeys: -1 }), "maxKeys: -1 is not a valid number"],
    ["rules", () => leasedStore(shared(), { rules: ["a"] as never }), 'rules: ["a"] is not a function'],
    ["a clock", () => writeBackStore(shared(), { clock: {} as never }), "clock: {} is not a clock"],
    ["a name", () => leasedStore(shared(), { leasMs: 5 } as never), 'did you mean "leaseMs"?'],
    ["a method", () => writeBackStore(shared(), { toString: 5 } as never), "toString: is not an option of"],
    ["no options", () => writeBackStore(shared(), null as never), "null is not an options object"],
    ["no near store", () => mirroredStore({ far } as never), "near: undefined is not a store"],
    ["no far store", () => mirroredStore({ near } as never), "far: undefined is not an object of stores"],
    ["an empty far", () => mirroredStore({ near, far: {} }), "far: {} is not an object of stores"],
    ["a far one", () => mirroredStore({ near, far: { eu: memoryStore() } }), "far.eu: is not shared"],
    ["the near store", () => mirroredStore({ near, far: { eu: near } }), "far.eu: is the same store as near"],
    [
      "a twin",
      () => mirroredStore({ near, far: { ...far, us: far.eu } }),
      "far.us: is the same store as far.eu",
    ],
    ["a long time", () => mirroredStore({ near, far, everyMs: 1_001 }), "everyMs: 1001 is not a valid time"],
    ["nothing", () => mirroredStore(undefined as never), "undefined is not an options object"],
  ])("are rejected if invalid: %s", (_, create, message) => {
    expect(create).toThrow(message)
  })

  it("accept a leased store behind a write-back store, or as the near store", () => {
    const leased = () => leasedStore(shared(), { clock: manualClock() })
    expect(writeBackStore(leased()).status?.leases).toMatchObject({ held: 0 })
    expect(mirroredStore({ near: leased(), far }).status?.leases).toMatchObject({ held: 0 })
  })
})
