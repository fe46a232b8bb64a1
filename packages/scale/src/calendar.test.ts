import { createLimiter, type Limiter, memoryStore, type Store } from "@sluice/core"
import type { Policy, StoreResult } from "@sluice/core/stores"
import { type ManualClock, manualClock } from "@sluice/core/testing"
import { describe, expect, it } from "vitest"
import { leasedStore } from "./leased/leased-store.ts"
import { leased } from "./leased/testing/shared-memory.ts"
import { mirroredStore } from "./mirrored/mirrored-store.ts"
import { boundariesOf, SentPeriods } from "./testing/periods.ts"
import { check, SERVICE, settle } from "./testing/shared-memory.ts"
import { writeBackStore } from "./write-back/write-back-store.ts"

const LIMIT = 16_000
/** February has 29 days, and the longest of the months around it 31. */
const MARCH = Date.UTC(2024, 2, 1)

/** Returns a shared store, and a function that opens a monthly limit on a store in front of it. */
function world(clock: ManualClock = manualClock(MARCH - 100)) {
  const shared = Object.assign(memoryStore({ clock }), { isShared: true })
  const open = (store: Store): Limiter =>
    createLimiter({
      ...{ service: "shop", name: "monthly", limit: LIMIT, per: "month", field: "service" },
      ...{ store, clock, logger: { warn() {}, error() {} } },
    })
  // Another process, whose requests go to the shared store.
  const other = open(shared)
  const used = async (): Promise<number> => LIMIT - (await other.peek({})).remaining
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms)
    await settle()
  }
  return { clock, shared, open, used, pass }
}

describe("a lease of a month", () => {
  it("ends with its month, even if that month is shorter than others, and gives nothing to the next month", async () => {
    const { clock, shared, open, used, pass } = world()
    const store = leasedStore(shared, { clock })
    const limiter = open(store)
    await limiter.decide({}, { cost: 500 })
    expect([store.status?.leases?.held, await used()]).toEqual([50, 550])
    clock.advance(98)
    expect((await limiter.decide({}, { cost: 7 })).checks[0]?.ageMs).toBe(98)
    await pass(2)
    expect(await limiter.decide({}, { cost: 7 })).toMatchObject({
      remaining: LIMIT - 7,
      resetAfterMs: 31 * 86_400_000,
    })
    const held = store.status?.leases?.held ?? 0
    expect(await used()).toBe(7 + held)
    // Refunded units of February are not units of March.
    await pass(5_000)
    expect(await used()).toBe(7)
  })

  it("that is always in use counts by the boundaries of its latest request", () => {
    const { clock, store, counted } = leased()
    const windowMs = 2_000
    const boundaries = boundariesOf(windowMs)
    const sent = new SentPeriods(boundaries)
    const calendar: Policy = { ...SERVICE, algorithm: "fixed-window", counter: "calendar", windowMs }
    const granted = new Map<number, number>()
    for (let step = 0; step < 400; step++) {
      const nowMs = clock.now()
      const policy = { ...calendar, periods: sent.at(nowMs) }
      const { checks } = store.take([check(10, { policy })]) as StoreResult
      const startMs = policy.periods[1] as number
      granted.set(startMs, (granted.get(startMs) ?? 0) + (checks[0]?.taken ?? 0))
      const held = store.status?.leases?.held ?? 0
      expect([nowMs, counted(policy)]).toEqual([nowMs, (granted.get(startMs) as number) + held])
      clock.advance(50)
    }
    expect(granted.size).toBeGreaterThan(9)
    expect(store.status?.leases?.granted).toBeGreaterThan(2_000)
  })
})

describe("a month that is written back", () => {
  it("drops the units of a month that ended before they were charged, and charges units to their own month", async () => {
    const { clock, shared, open, used, pass } = world()
    const limiter = open(writeBackStore(shared, { clock }))
    const late = open(writeBackStore(shared, { clock, settleMs: 200 }))
    await limiter.decide({}, { cost: 5 })
    await late.decide({}, { cost: 3 })
    await pass(99)
    expect(await used()).toBe(0)
    await limiter.decide({}, { cost: 11 })
    await pass(1)
    expect((await limiter.decide({}, { cost: 2 })).remaining).toBe(LIMIT - 2)
    await pass(300)
    expect(await used()).toBe(2)
  })

  it("refunds units to their own month", async () => {
    const { clock, shared, open, used, pass } = world(manualClock(MARCH - 1_000))
    const limiter = open(writeBackStore(shared, { clock }))
    const february = await limiter.decide({}, { cost: 5 })
    await pass(200)
    expect(await used()).toBe(5)
    await pass(800)
    await limiter.decide({}, { cost: 2 })
    await limiter.refund(february)
    await pass(200)
    expect(await used()).toBe(2)
  })
})

describe("units that are granted in this process", () => {
  it.each([
    ["a lease", leasedStore],
    ["write-back", writeBackStore],
  ] as const)("are seen by peek and admit a request that waits, with %s", async (_name, inFront) => {
    const { clock, shared, open, used, pass } = world(manualClock(MARCH))
    const limiter = open(inFront(shared, { clock }))
    while ((await limiter.decide({}, { cost: 20 })).allowed) await pass(1)
    const waiting = limiter.acquire({}, { cost: 70 })
    await limiter.decide({}, { cost: 20 })
    await limiter.grant({}, 100, { rules: ["monthly"] })
    expect(await waiting).toMatchObject({ allowed: true, limit: LIMIT + 100 })
    expect((await limiter.peek({})).checks[0]).toMatchObject({ granted: 100 })
    await pass(3_000)
    const { remaining } = await limiter.peek({})
    // The refused request may have fitted neither into the units of the lease nor into those of the shared store.
    expect(remaining).toBeLessThan(30 + 2 * 20)
    expect(await used()).toBe(LIMIT - remaining)
  })
})

describe("a month that is mirrored", () => {
  it("drops a charge that arrives in the next month", async () => {
    const { clock, shared: far, open, used, pass } = world()
    const near = Object.assign(memoryStore({ clock }), { isShared: true })
    const limiter = open(mirroredStore({ near, far: { far }, everyMs: 60, clock }))
    await limiter.decide({}, { cost: 5 })
    await pass(60)
    expect(await used()).toBe(5)
    await limiter.decide({}, { cost: 7 })
    await pass(40)
    await limiter.decide({}, { cost: 2 })
    expect(await used()).toBe(0)
    await pass(60)
    expect(await used()).toBe(2)
  })
})
