import { memoryStore, StoreUnavailableError } from "@sluice/core"
import {
  type Check,
  type Policy,
  peekStore,
  type Refund,
  type StoreEvent,
  type StoreResult,
} from "@sluice/core/stores"
import { manualClock } from "@sluice/core/testing"
import { describe, expect, it, onTestFinished, vi } from "vitest"
import { methodsOf } from "../../../core/src/stores/testing/methods-of.ts"
import { check, type Fault, rejecting, SERVICE, settle } from "../testing/shared-memory.ts"
import { leasedStore } from "./leased-store.ts"
import { Leases } from "./leases.ts"
import { type Leased, leased } from "./testing/shared-memory.ts"

const T = 1_000
const EVEN: Policy = { ...SERVICE, algorithm: "token-bucket" }
/** A rule that is too small to be leased. */
const CLIENT: Policy = { ...SERVICE, name: "client", counter: "client", limit: 2 }

/** Takes units. The first request goes to the shared store, and the lease then books its demand. */
function warm({ take }: Leased, units: number, policy = SERVICE): void {
  take(check(units, { policy }))
}

/** Returns a store with a lease of 500 units. */
function warmed(policy?: Policy): Leased {
  const world = leased()
  warm(world, 500, policy)
  return world
}

describe("a leased counter", () => {
  it("sends the first requests to the store, then books the demand and grants from the booked units", () => {
    const world = leased()
    const { take, counted, calls, store } = world
    const ledger: [fromLease: boolean, counted: number, held: number][] = []
    for (const cost of [1, 1, 1, 1, 1, 4, 1]) {
      const { granted, isRemembered = false } = take(check(cost))
      expect(granted).toBe(true)
      ledger.push([isRemembered, counted(), store.status?.leases?.held as number])
    }
    // When less than half of the demand is held, a booking raises the held units to the demand.
    expect(ledger).toEqual([
      [false, 1, 0], // demand 1: a booking of one unit saves nothing
      [false, 4, 2], // demand 2, booked 2
      [true, 6, 3], // demand 3, held 1, booked 2
      [true, 6, 2],
      [true, 10, 5], // demand 5, held 1, booked 4
      [true, 18, 9], // demand 9, held 1, booked 8
      [true, 18, 8],
    ])
    expect(calls.takes).toHaveLength(6)
    expect(store.status?.leases).toEqual({
      held: 8,
      heldOff: 0,
      granted: 8,
      booked: 16,
      returned: 0,
      lost: 0,
    })
  })

  it("reports its state without the held units, as of the server's time", () => {
    const world = warmed()
    world.clock.advance(20.25)
    const startMs = world.clock.now() - 20.25
    expect(world.take(check(100))).toStrictEqual({
      nowMs: startMs + 20,
      granted: true,
      checks: [
        {
          state: { startMs, current: 600, previous: 0 },
          taken: 100,
          after: { startMs, current: 1_000, previous: 0 },
          ageMs: 21,
        },
      ],
      isRemembered: true,
    })
  })

  it("sends a request above the held units to the store, and does not spend held units", () => {
    const world = warmed()
    const answer = world.take(check(501))
    expect([answer.granted, answer.isRemembered, answer.checks[0]?.ageMs]).toEqual([
      true,
      undefined,
      undefined,
    ])
    expect(world.calls.takes.at(-2)).toEqual([check(501)])
    // The demand is now 1,001, so 501 units were booked.
    expect(world.store.status?.leases?.held).toBe(1_001)
  })

  it("books with a policy that admits no units above the limit and counts no refusals", () => {
    const world = leased()
    world.take(check(500, { policy: { ...SERVICE, extra: 100, countRejected: true } }))
    expect(world.calls.takes.at(-1)?.[0]).toStrictEqual(check(500))
  })

  it("ends when its limit changes, and refunds the held units", () => {
    const world = warmed()
    expect(world.counted()).toBe(1_000)
    const cut = { ...SERVICE, limit: 8_000 }
    expect(world.take(check(1, { policy: cut })).isRemembered).toBeUndefined()
    expect(world.counted()).toBe(501)
    // A ceiling that changes with the spare capacity does not change the limit.
    world.take(check(200, { policy: cut }))
    expect(world.take(check(1, { policy: { ...cut, extra: 50 } })).isRemembered).toBe(true)
  })

  it("of a bucket ends when its burst changes", () => {
    const world = leased()
    warm(world, 500, { ...EVEN, burst: 20_000 })
    expect(world.take(check(1, { policy: { ...EVEN, burst: 10_000 } })).isRemembered).toBeUndefined()
    expect(world.calls.refunds).toMatchObject([{ units: 500 }])
  })

  it("lasts until the server may be in the next window", () => {
    const world = leased()
    world.clock.advance(59_900.5)
    warm(world, 500)
    const held = world.store.status?.leases?.held as number
    expect(held).toBe(50)
    // The server's clock is at most a millisecond ahead of the time that it reported, so 98.9 ms later, the window
    // may have ended.
    world.clock.advance(98.4)
    expect(world.take(check(1)).isRemembered).toBe(true)
    world.clock.advance(0.6)
    expect(world.take(check(1)).isRemembered).toBeUndefined()
    expect(world.calls.refunds).toMatchObject([{ units: held - 1 }])
  })

  it("ends when the clock of the process is set back", () => {
    const world = leased()
    world.clock.advance(1_000)
    warm(world, 500)
    world.clock.advance(-1)
    expect(world.take(check(1)).isRemembered).toBeUndefined()
    expect(world.counted()).toBe(501)
  })

  it("ends when the server counts in another window, even earlier than its clock should", async () => {
    const serverClock = manualClock()
    const { take, refund } = methodsOf(memoryStore({ clock: serverClock }))
    const world = leased({}, {}, { take, refund })
    warm(world, 500)
    serverClock.advance(60_000)
    world.take(check(600))
    await settle()
    expect(world.store.status?.leases).toMatchObject({ booked: 1_400, returned: 500 })
  })

  it("books no units if the window ends within a round trip and 2 ms", () => {
    const world = leased()
    world.clock.advance(59_998)
    warm(world, 1_600)
    expect(world.store.status?.leases?.booked).toBe(0)
  })

  it("of a bucket ends each booking separately, and spends the oldest booking first", () => {
    const world = warmed(EVEN)
    world.clock.advance(600)
    for (let i = 0; i < 3; i++) world.take(check(100, { policy: EVEN }))
    // The second request left 300 of 700 units, so 400 were booked.
    expect(world.store.status?.leases).toMatchObject({ booked: 900, granted: 300, held: 600 })
    world.clock.advance(398)
    expect(world.take(check(1, { policy: EVEN })).isRemembered).toBe(true)
    world.clock.advance(1)
    expect(world.take(check(1, { policy: EVEN })).isRemembered).toBe(true)
    // The units are subtracted from the level after their booking. Nearly all of that level has been refilled.
    const startMs = world.clock.now() - 999
    expect(world.calls.refunds).toMatchObject([{ units: 199, after: { startMs, current: 1_000 } }])
  })

  it("must belong to a selected rule whose limit is at least leastLimit", () => {
    const world = leased({ rules: (name) => name !== "service" })
    warm(world, 500)
    expect(world.store.status?.leases?.booked).toBe(0)
    const larger = leased({ leastLimit: 16_001 })
    warm(larger, 500)
    expect(larger.store.status?.leases?.booked).toBe(0)
  })
})

describe("a store that responds late", () => {
  it("delays no request for a booking, because requests go to the store until the booking arrives", async () => {
    const { store, waiting, answer } = leased({}, { slow: ["take"] })
    const first = store.take([check(100)])
    await answer()
    expect(await first).toMatchObject({ granted: true })
    // The booking is in flight.
    expect(waiting).toHaveLength(1)
    const second = store.take([check(100)])
    expect(waiting).toHaveLength(2)
    waiting.pop()?.()
    expect(await second).toMatchObject({ granted: true })
    // There is never a second booking in flight.
    expect(waiting).toHaveLength(1)
    await answer()
    expect(store.status?.leases?.held).toBe(100)
  })

  it("gets back a booking that arrives after the end of its window", async () => {
    const { store, answer, clock, counted } = leased({}, { slow: ["take"] })
    const first = store.take([check(100)])
    await answer()
    await first
    clock.advance(60_000)
    await answer()
    // The booking was sent before the start of the window in which the store applied it.
    expect(store.status?.leases).toMatchObject({ booked: 100, held: 0, returned: 100 })
    // Half a window later, no units of the first request count.
    clock.advance(60_000)
    expect(counted()).toBe(0)
  })

  it("gets back a booking after its limit has changed or while the leased store is closing", async () => {
    const { store, answer, counted } = leased({}, { slow: ["take"] })
    const first = store.take([check(100)])
    await answer()
    await first
    const cut = store.take([check(1, { policy: { ...SERVICE, limit: 8_000 } })])
    for (let i = 0; i < 2; i++) await answer()
    await cut
    expect(counted()).toBe(101)
    const last = store.take([check(300, { policy: { ...SERVICE, limit: 8_000 } })])
    await answer()
    await last
    const closed = store.close()
    await answer()
    await closed
    const { held, booked, returned } = store.status?.leases ?? {}
    expect([held, returned]).toEqual([0, booked])
  })
})

describe("a request under several rules", () => {
  it("returns units to the store if their window has ended meanwhile", async () => {
    const { store, clock, others, waiting, answer, calls } = leased({}, { slow: ["take"] })
    void store.take([check(500)])
    while (waiting.length > 0) await answer()
    const asked = store.take([check(7), check(1, { policy: CLIENT })])
    clock.advance(120_000)
    await settle()
    void others.take([check(2, { policy: CLIENT })])
    await answer()
    expect(await asked).toMatchObject({ granted: false })
    expect(calls.order).toEqual(["refund 493", "refund 7"])
  })
})

describe("refunds", () => {
  const afterOf = ({ checks }: StoreResult) => {
    const [counted] = checks
    if (counted === undefined) throw new Error("not counted")
    return counted.after ?? counted.state
  }

  it("return to the lease while its window lasts, and to the store afterwards", async () => {
    const world = warmed()
    const after = afterOf(world.take(check(10)))
    const refund = { policy: SERVICE, partition: "", units: 4, after }
    await world.store.refund([refund])
    expect([world.store.status?.leases?.held, world.calls.refunds]).toEqual([494, []])
    world.clock.advance(60_000)
    await world.store.refund([refund])
    expect(world.calls.refunds).toContainEqual(refund)
  })

  it.each([
    ["a charge", (one: Refund): Refund => ({ ...one, units: -4 })],
    ["units of another window", (one: Refund): Refund => ({ ...one, after: { ...one.after, startMs: 0 } })],
    ["units above the limit", (one: Refund): Refund => ({ ...one, policy: { ...SERVICE, extra: 5 } })],
    ["units of another limit", (one: Refund): Refund => ({ ...one, policy: { ...SERVICE, limit: 9_000 } })],
    ["more units than this process was granted", (one: Refund): Refund => ({ ...one, units: 11 })],
    ["another partition", (one: Refund): Refund => ({ ...one, partition: "other" })],
  ])("go to the store: %s", async (_, change) => {
    const world = warmed()
    const after = afterOf(world.take(check(10)))
    const refund = change({ policy: SERVICE, partition: "", units: 4, after })
    await world.store.refund([refund])
    expect([world.store.status?.leases?.held, world.calls.refunds]).toEqual([490, [refund]])
  })

  it.each([EVEN, { ...EVEN, refill: "periodic" } as const])(
    "of a bucket go to the store (%o)",
    async (policy) => {
      const world = warmed(policy)
      const after = afterOf(world.take(check(10, { policy })))
      await world.store.refund([{ policy, partition: "", units: 4, after }])
      expect([world.store.status?.leases?.held, world.calls.refunds.length]).toEqual([490, 1])
    },
  )
})

describe("peek", () => {
  it("asks the store, and counts the held units of this process as remaining", async () => {
    const world = warmed()
    const peek = async (...checks: Check[]) => (await peekStore(world.store, checks)) as StoreResult
    expect(await peek(check(500))).toMatchObject({ granted: true, checks: [{ state: { current: 500 } }] })
    // `take` would send this request to the store in full.
    expect(await peek(check(501))).toMatchObject({ granted: true, checks: [{ state: { current: 1_000 } }] })
    expect(await peek(check(15_001))).toMatchObject({ granted: false })
    expect(await peek(check(1), check(3, { policy: CLIENT }))).toMatchObject({
      granted: false,
      checks: [{ state: { current: 500 } }, { state: { current: 0 } }],
    })
    expect(world.store.status?.leases).toMatchObject({ granted: 0, held: 500 })
  })
})

describe("reset", () => {
  it("drops the lease and refunds no units, because the store deletes them", async () => {
    const world = warmed()
    await world.store.reset([{ policy: SERVICE, partition: "" }])
    expect([world.counted(), world.store.status?.leases?.held, world.calls.refunds]).toEqual([0, 0, []])
    expect(world.take(check(1)).isRemembered).toBeUndefined()
  })

  it("refunds the held units if the store certainly did not reset the counter", async () => {
    const failure = new StoreUnavailableError("down", { outcome: "not-applied" })
    const world = leased({}, {}, { reset: () => Promise.reject(failure) })
    warm(world, 500)
    await expect(world.store.reset([{ policy: SERVICE, partition: "" }])).rejects.toBe(failure)
    expect([world.counted(), world.store.status?.leases]).toMatchObject([
      500,
      { held: 0, returned: 500, lost: 0 },
    ])
  })

  it("counts held units, and units booked meanwhile, as lost if the outcome of the reset is unknown", async () => {
    const { store, take, fail, answer } = leased({}, { slow: ["reset"] })
    const events: StoreEvent[] = []
    store.subscribe?.((event) => events.push(event))
    take(check(500))
    const reset = store.reset([{ policy: SERVICE, partition: "" }])
    take(check(300))
    fail(rejecting(new Error("down")))
    void answer()
    await expect(reset).rejects.toThrow("down")
    expect(store.status?.leases).toMatchObject({ held: 0, returned: 0, lost: 800 })
    expect(events.map(({ type }) => type)).toEqual(["refund-lost"])
  })

  it("drops a booking that was in flight", async () => {
    const { store, answer, calls } = leased({}, { late: ["take"] })
    const first = store.take([check(500)])
    await answer()
    await first
    const reset = store.reset([{ policy: SERVICE, partition: "" }])
    await answer()
    await reset
    expect([store.status?.leases?.held, calls.refunds]).toEqual([0, []])
  })
})

describe("units that are not used", () => {
  it("are refunded T, the time of a lease, after the latest booking", async () => {
    const world = warmed()
    world.clock.advance(T - 1)
    await settle()
    expect(world.counted()).toBe(1_000)
    world.clock.advance(1)
    await settle()
    expect([world.counted(), world.store.status?.leases?.held, world.store.status?.leases?.returned]).toEqual(
      [500, 0, 500],
    )
  })

  it("are lost if the store does not refund them, and an event reports the loss", async () => {
    const failures: (() => void | Promise<void>)[] = [
      () => Promise.reject(new StoreUnavailableError("gone")),
      () => {
        throw new Error("broken")
      },
    ]
    const world = leased({}, {}, { refund: () => failures.shift()?.() })
    const events: StoreEvent[] = []
    const stop = world.store.subscribe?.((event) => events.push(event))
    for (let i = 0; i < 2; i++) {
      warm(world, 500)
      world.clock.advance(T)
      await settle()
    }
    expect(world.store.status?.leases).toMatchObject({ held: 0, lost: 1_000, returned: 0 })
    expect(events.map((event) => event.type === "refund-lost" && event.error.message)).toEqual([
      "gone",
      "The store failed: broken",
    ])
    stop?.()
  })

  it("belong to at most 10,000 counters, because each further counter would end another lease", () => {
    const opened: string[] = []
    const rules = (name: string): boolean => opened.push(name) > 0
    const world = leased({ rules })
    world.take(check(100, { partition: "first" }))
    for (let i = 0; i < 9_999; i++) world.take(check(1, { partition: `${i}` }))
    world.clock.advance(2 * T - 1)
    for (let i = 0; i < 9_999; i++) world.take(check(1, { partition: `${i}` }))
    expect([world.calls.refunds, opened.length]).toEqual([[], 10_000])
    // Both requests go to the shared store, and their counter is not leased.
    for (let i = 0; i < 2; i++) expect(world.take(check(1, { partition: "last" })).granted).toBe(true)
    expect([world.calls.refunds, opened.length]).toEqual([[], 10_002])
    // The first counter got no request for 2 T. Some of these calls check its lease.
    world.clock.advance(1)
    for (let i = 0; i < 1_000; i++) world.take(check(1, { partition: "last" }))
    expect(opened.length).toBeLessThan(11_002)
    expect(world.calls.refunds).toMatchObject([{ partition: "first", units: 100 }])
  })

  it("do not keep the lease of a counter without requests in memory", async () => {
    const opened: string[] = []
    const rules = (name: string): boolean => {
      opened.push(name)
      return true
    }
    const world = leased({ rules })
    warm(world, 500)
    world.clock.advance(1_500)
    world.take(check(1))
    expect(opened).toHaveLength(1)
    world.clock.advance(1_500)
    world.take(check(500, { partition: "other" }))
    world.clock.advance(T)
    await settle()
    world.take(check(1))
    expect(opened).toHaveLength(3)
  })

  it("are refunded after the machine was suspended, which stops only the monotonic clock", async () => {
    const { shared, clock, counted } = leased()
    let wallMs = 0
    const rules = () => true
    const store = new Leases(shared, { leaseMs: T, leastLimit: 1, rules, clock, wallMs: () => wallMs })
    store.take([check(500)])
    clock.advance(700)
    wallMs = 700
    store.take([check(500, { partition: "other" })])
    // The machine was suspended for a minute. The lease of the other partition is 300 ms old.
    wallMs += 60_000
    clock.advance(300)
    await settle()
    expect(counted()).toBe(500)
    expect(store.status.leases?.held).toBe(0)
  })
})

describe("a booking that fails", () => {
  const full = { startMs: Date.UTC(2024, 0, 1), current: 16_000, previous: 0 }
  const refusal = {
    nowMs: full.startMs,
    granted: false,
    checks: [{ state: full, taken: 0 }],
    isRemembered: true,
  }
  it.each<[string, Fault]>([
    ["by an error", rejecting(new StoreUnavailableError("gone"))],
    ["by a refusal that the store remembers", () => refusal],
  ])("is retried 10 ms later, and the lease grants until then: %s", async (_, fault) => {
    const world = warmed()
    world.fail(fault)
    const before = world.calls.takes.length
    const ledger: number[] = []
    for (const afterMs of [0, 0, 9, 1]) {
      world.clock.advance(afterMs)
      expect(world.take(check(100)).isRemembered).toBe(true)
      await settle()
      ledger.push(world.calls.takes.length - before)
    }
    expect(ledger).toEqual([0, 1, 1, 2])
  })

  it("ends at the request's deadline if the store has no timeout, and refunds late units", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    onTestFinished(() => void vi.useRealTimers())
    const { store, clock, waiting, answer, calls } = leased({}, { slow: ["take"] })
    const first = store.take([check(500)], 50)
    await answer()
    await first
    expect(waiting).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(60)
    clock.advance(60)
    // The booking has ended, so another booking may begin.
    void store.take([check(1)], 50)
    expect(waiting).toHaveLength(3)
    await answer()
    expect(calls.refunds).toMatchObject([{ units: 500 }])
  })
})

describe("a leased store", () => {
  it("passes the deadline of the request on to its booking", () => {
    const { shared, clock } = leased()
    const taken = vi.spyOn(shared, "take")
    void leasedStore(shared, { clock }).take([check(500)], 70)
    expect(taken.mock.calls.map(([, withinMs]) => withinMs)).toEqual([70, 70])
  })
})
