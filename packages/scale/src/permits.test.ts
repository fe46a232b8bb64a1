import { memoryStore, type Store } from "@sluice/core"
import { type CounterState, type Policy, releases, type StoreResult } from "@sluice/core/stores"
import { manualClock } from "@sluice/core/testing"
import { describe, expect, it } from "vitest"
import { methodsOf } from "../../core/src/stores/testing/methods-of.ts"
import { leasedStore } from "./leased/leased-store.ts"
import { leased } from "./leased/testing/shared-memory.ts"
import { type DataCenter, dataCenters, check as userCheck } from "./mirrored/testing/data-centers.ts"
import { check, SERVICE, type SharedMemory, sharedMemory } from "./testing/shared-memory.ts"
import { writeBackStore } from "./write-back/write-back-store.ts"

/** Five permits, which end one to two minutes after they were taken or last renewed. */
const PERMITS: Policy = { ...SERVICE, name: "permits", counter: "permits", algorithm: "in-flight", limit: 5 }
const MINUTE = PERMITS.windowMs
const permit = check(1, { policy: PERMITS })

/** A store in front of a shared store, and a function that takes units without waiting. */
interface InFront extends SharedMemory {
  readonly store: Store
  take(...checks: (typeof permit)[]): StoreResult
}

/** Keeps the shared store open, so that its counts can be read after the store in front was closed. */
const STAYS_OPEN: Partial<Store> = { close() {} }

function writtenBack(): InFront {
  const memory = sharedMemory(STAYS_OPEN)
  const store = writeBackStore(memory.shared, { clock: memory.clock })
  return { ...memory, store, take: (...checks) => store.take(checks) as StoreResult }
}

/** Returns the state in which the permit of a result is counted. */
function afterOf(result: StoreResult): CounterState {
  const counted = result.checks.at(-1)
  return (counted?.after ?? counted?.state) as CounterState
}

describe.each([
  ["a leased store", () => leased({ leastLimit: 1 }, {}, STAYS_OPEN)],
  ["a write-back store", writtenBack],
] as const)("permits behind %s", (_name, open) => {
  it("are taken in the shared store only, one call for each request", () => {
    const { take, calls, store, counted } = open()
    const granted = Array.from({ length: 8 }, () => take(permit).granted)
    expect(granted).toEqual([...Array(5).fill(true), ...Array(3).fill(false)])
    expect(calls.takes).toEqual(Array(8).fill([permit]))
    expect(counted(PERMITS)).toBe(5)
    expect(store.status?.leases?.booked ?? 0).toBe(0)
  })

  it("are the only check that is sent if local units cover the rate", () => {
    const { take, calls, counted } = open()
    take(check(500))
    const before = calls.takes.length
    const { granted, checks } = take(check(10), permit)
    expect([granted, ...checks.map((counted) => counted?.taken)]).toEqual([true, 10, 1])
    expect(calls.takes.slice(before)).toEqual([[permit]])
    expect(counted(PERMITS)).toBe(1)
  })

  it("that are missing leave the rate unchanged, to the unit", async () => {
    const { take, store, counted } = open()
    take(check(500))
    for (let i = 0; i < 5; i++) take(permit)
    for (let i = 0; i < 20; i++) expect(take(check(10), permit).granted).toBe(false)
    expect(counted(PERMITS)).toBe(5)
    await store.close()
    expect(counted()).toBe(500)
  })

  it("are released and renewed in the shared store, from the window in which they were taken", async () => {
    const { take, calls, store, clock, counted } = open()
    take(check(500))
    const results = [take(check(10), permit), take(check(10), permit), take(permit)]
    expect(results.map(({ granted }) => granted)).toEqual([true, true, true])
    clock.advance(MINUTE)
    const at = { policy: PERMITS, partition: "" }
    const refunds = [
      { ...at, units: 1, after: afterOf(results[0] as StoreResult) },
      { ...at, units: -2, after: afterOf(results[2] as StoreResult) },
    ]
    const before = calls.refunds.length
    await store.refund(refunds)
    expect(calls.refunds.slice(before).filter(({ policy }) => policy === PERMITS)).toEqual(refunds)
    expect(counted(PERMITS)).toBe(2)
    clock.advance(MINUTE)
    expect(counted(PERMITS)).toBe(2)
    await store.close()
  })
})

it("the permits of a server whose clock is behind are released from the window of their server", () => {
  const start = Date.UTC(2024, 0, 1)
  const [clock, behind] = [manualClock(start), manualClock(start - 50)]
  const [rates, permits] = [memoryStore({ clock }), memoryStore({ clock: behind })]
  const storeOf = (policy: Policy) => (releases(policy) ? permits : rates)
  const shared: Store = {
    ...methodsOf(rates),
    isShared: true,
    take: (checks) => storeOf((checks[0] as typeof permit).policy).take(checks),
  }
  const store = leasedStore(shared, { clock })
  store.take([check(500)])
  const { nowMs, checks } = store.take([check(10), permit]) as StoreResult
  expect([nowMs, checks[1]?.taken]).toEqual([start, 1])
  // The result is as of the latest time, at which the permit counts in the previous window.
  expect(checks[1]?.state).toEqual({ startMs: start, current: 0, previous: 1 })
  expect(checks[1]?.after).toEqual({ startMs: start - MINUTE, current: 1, previous: 0 })
})

describe("permits behind a mirrored store", () => {
  const permits = userCheck(1, { policy: PERMITS })

  it("count in one data center only, also when they are released and renewed", async () => {
    const { centers, pass } = dataCenters(2)
    const [a, b] = centers as [DataCenter, DataCenter]
    const results = [1, 2, 3, 4, 5].map(() => a.take(userCheck(1), permits))
    expect([a.take(permits).granted, b.take(permits).granted]).toEqual([false, true])
    await pass(100)
    const at = { policy: PERMITS, partition: "ann" }
    const [first] = results as [StoreResult]
    await a.store.refund([{ ...at, units: 2, after: afterOf(first) }])
    await pass(100)
    await a.store.refund([{ ...at, units: -3, after: afterOf(first) }])
    await pass(100)
    expect([a.counted(PERMITS, "ann"), b.counted(PERMITS, "ann")]).toEqual([3, 1])
    expect([a.counted(), b.counted()]).toEqual([5, 5])
    expect(b.charges.flat().map(({ policy }) => policy.name)).toEqual(["user"])
    expect(a.charges).toEqual([])
  })

  it("are reset in all data centers", async () => {
    const { centers } = dataCenters(2)
    const [a, b] = centers as [DataCenter, DataCenter]
    for (const { take } of centers) take(permits)
    await a.store.reset([permits])
    expect([a.counted(PERMITS, "ann"), b.counted(PERMITS, "ann")]).toEqual([0, 0])
  })
})
