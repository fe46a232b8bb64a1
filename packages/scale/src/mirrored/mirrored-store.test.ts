import { ClosedError, memoryStore, type Store, StoreUnavailableError } from "@sluice/core"
import type { Policy } from "@sluice/core/stores"
import { describe, expect, it, onTestFinished, vi } from "vitest"
import { countFakeTimers } from "../../../core/src/ground/testing/fake-timers.ts"
import { leasedStore } from "../leased/leased-store.ts"
import { mirroredStore } from "./mirrored-store.ts"
import { check, type DataCenter, dataCenters, USER } from "./testing/data-centers.ts"

type Two = [DataCenter, DataCenter]

const OTHER: Policy = { ...USER, name: "other", counter: "other" }
const BLOCK: Policy = {
  ...{ name: "user", counter: "blocks", algorithm: "penalty", align: "epoch", limit: 0, windowMs: 1 },
  penalty: { refusals: 0, withinMs: 1, forMs: [1] },
}
const NOTHING = { startMs: 0, current: 0, previous: 0 }

function sharedStore(): Store {
  return Object.assign(memoryStore(), { isShared: true })
}

/** Fakes timers until the end of the test. Returns a function that counts the timers that the package has set. */
function fakeTimers(): () => number {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
  onTestFinished(() => void vi.useRealTimers())
  return countFakeTimers("/packages/scale/src/")
}

function two(options = {}) {
  const world = dataCenters(2, options)
  const [a, b] = world.centers as unknown as Two
  return { ...world, a, b }
}

describe("a mirrored store", () => {
  it("decides with the near store immediately, and charges the far stores after everyMs", async () => {
    const { centers, pass } = dataCenters(3)
    const [a, b, c] = centers as [DataCenter, DataCenter, DataCenter]
    expect(a.take(check(4))).toMatchObject({ granted: true, checks: [{ taken: 4 }] })
    a.take(check(2))
    await pass(99)
    expect([a.counted(), b.counted(), c.counted()]).toEqual([6, 0, 0])
    await pass(1)
    expect([a.counted(), b.counted(), c.counted()]).toEqual([6, 6, 6])
    expect(b.take(check(5)).granted).toBe(false)
    expect(b.take(check(4)).granted).toBe(true)
    await pass(100)
    expect([a.counted(), b.counted(), c.counted()]).toEqual([10, 10, 10])
    // Both data centers have sent one charge.
    expect([a.charges.length, b.charges.length, c.charges.length]).toEqual([1, 1, 2])
  })

  it("charges the window in which a cluster granted the units, and not the window of its reply", async () => {
    const [near, far] = [sharedStore(), sharedStore()]
    const charged = vi.spyOn(far, "refund")
    const state = { startMs: 2_000, current: 0, previous: 3 }
    const after = { startMs: 1_000, current: 3, previous: 0 }
    near.take = () => ({ nowMs: 2_000, granted: true, checks: [{ state, taken: 3, after }] })
    const store = mirroredStore({ near, far: { far } })
    await store.take([check(3)])
    await store.close()
    expect(charged).toHaveBeenCalledWith([{ policy: USER, partition: "ann", units: -3, after }], 1_000)
  })

  it("reports the events of all stores", () => {
    const [near, far] = [sharedStore(), sharedStore()]
    const stops = [vi.fn(), vi.fn()] as const
    const lost = (text: string) => ({ type: "refund-lost" as const, error: new StoreUnavailableError(text) })
    near.subscribe = (listener) => {
      listener(lost("near"))
      return stops[0]
    }
    far.subscribe = (listener) => {
      listener(lost("far"))
      return stops[1]
    }
    const told: string[] = []
    const store = mirroredStore({ near, far: { far } })
    const stop = store.subscribe?.((event) =>
      told.push(event.type === "refund-lost" ? event.error.message : ""),
    )
    expect(told).toEqual(["near", "far"])
    stop?.()
    expect(stops.map((fn) => fn.mock.calls.length)).toEqual([1, 1])
  })

  it("charges neither refused requests nor checks that took no units", async () => {
    const { a, b, pass } = two()
    expect(a.take(check(2), check(11, { policy: OTHER })).granted).toBe(false)
    expect(a.take(check(2), check(11, { policy: OTHER, shadow: true })).granted).toBe(true)
    a.take(check(0))
    await pass(100)
    expect(b.charges).toMatchObject([[{ policy: USER, units: -2 }]])
  })

  it("also applies refunds and charges of the caller in the other data centers", async () => {
    const { a, b, pass } = two()
    const after = a.take(check(6)).checks[0]?.state ?? NOTHING
    await pass(100)
    await a.store.refund([{ ...check(), units: 4, after }])
    await pass(100)
    expect([a.counted(), b.counted()]).toEqual([2, 2])
    await a.store.refund([{ ...check(), units: -5, after }])
    await pass(100)
    expect([a.counted(), b.counted()]).toEqual([7, 7])
    // A unit that is refunded before its charge is never charged.
    const later = a.take(check(3)).checks[0]?.state ?? NOTHING
    await a.store.refund([{ ...check(), units: 3, after: later }])
    await pass(100)
    expect([b.charges.length, b.counted()]).toEqual([3, 7])
  })

  it("does not charge for a refund that the near store did not apply", async () => {
    const [near, far] = [sharedStore(), sharedStore()]
    near.refund = () => Promise.reject(new StoreUnavailableError("down"))
    const charged = vi.spyOn(far, "refund")
    const store = mirroredStore({ near, far: { far } })
    await expect(store.refund([{ ...check(), units: -5, after: NOTHING }])).rejects.toThrow("down")
    await store.close()
    expect(charged).not.toHaveBeenCalled()
  })

  it("does not offset refunds of a bucket against units that were taken later", async () => {
    const { a, b, pass } = two()
    const bucket: Policy = {
      ...{ name: "bucket", counter: "bucket", algorithm: "token-bucket", align: "epoch" },
      ...{ limit: 600, windowMs: 60_000, burst: 100 },
    }
    const before = a.take(check(50, { policy: bucket })).checks[0]?.state ?? NOTHING
    await pass(5_000)
    await pass(100)
    a.take(check(50, { policy: bucket }))
    // These units have already been refilled.
    await a.store.refund([{ ...check(50, { policy: bucket }), units: 50, after: before }])
    await pass(100)
    expect(a.counted(bucket)).toBeGreaterThanOrEqual(48)
    expect(b.counted(bucket)).toBeGreaterThanOrEqual(48)
  })

  it("mirrors only the selected rules", async () => {
    const { a, b, pass } = two({ rules: (name: string) => name === "user" })
    a.take(check(2), check(3, { policy: OTHER }))
    await a.store.reset([check(), check(1, { policy: OTHER })])
    a.take(check(2), check(3, { policy: OTHER }))
    await pass(100)
    expect([b.counted(), b.counted(OTHER)]).toEqual([2, 0])
    expect(b.resets).toMatchObject([[{ policy: USER }]])
  })

  it("does not mirror refusals that count", async () => {
    const { a, b, pass } = two()
    const counting: Policy = { ...OTHER, countRejected: true, limit: 1 }
    a.take(check(1, { policy: counting }))
    expect(a.take(check(1, { policy: counting })).granted).toBe(false)
    await pass(100)
    expect(b.counted(OTHER)).toBe(1)
  })

  it("works behind a leased store, whose bookings are charged and refunded", async () => {
    const { a, b, clock, pass } = two()
    const service: Policy = { ...USER, limit: 16_000, counter: "service" }
    const leased = leasedStore(a.store, { clock })
    for (let i = 0; i < 200; i++) await leased.take([check(1, { policy: service })])
    await pass(100)
    expect([leased.status?.leases?.held === 0, leased.status?.mirrors]).toEqual([
      false,
      { b: { lost: 0, failingMs: 0 } },
    ])
    expect(b.counted(service)).toBe(a.counted(service))
    await pass(2_000)
    await pass(100)
    expect([a.counted(service), b.counted(service)]).toEqual([200, 200])
  })
})

describe("while another data center does not respond, a mirrored store", () => {
  const down = () => Promise.reject(new StoreUnavailableError("Redis is gone.", { kind: "unavailable" }))

  it("decides, loses the units that it could not charge, reports the loss, and charges later units", async () => {
    const { a, b, clock, pass } = two()
    b.fault = down
    a.take(check(3))
    await pass(100)
    a.take(check(2))
    await pass(100)
    expect([a.counted(), b.counted()]).toEqual([5, 0])
    expect(a.events).toMatchObject([
      { type: "charges-lost", units: 3 },
      { type: "charges-lost", units: 2 },
    ])
    const { error } = a.events[0] as { readonly error?: StoreUnavailableError }
    expect(error?.message).toBe('The data center "b" did not confirm 3 units: Redis is gone.')
    expect([error?.kind, error?.outcome]).toEqual(["unavailable", "unknown"])
    // Without traffic, nothing fails.
    clock.advance(800)
    expect(a.store.status?.mirrors).toEqual({ b: { lost: 5, failingMs: 100 } })
    b.fault = undefined
    a.take(check(1))
    await pass(100)
    expect([a.counted(), b.counted()]).toEqual([6, 1])
    expect(a.store.status?.mirrors).toEqual({ b: { lost: 5, failingMs: 0 } })
  })

  it("still charges the other far stores", async () => {
    const { centers, pass } = dataCenters(3)
    const [a, b, c] = centers as [DataCenter, DataCenter, DataCenter]
    b.fault = down
    a.take(check(3))
    await pass(100)
    expect([b.counted(), c.counted()]).toEqual([0, 3])
    expect(a.store.status?.mirrors).toMatchObject({ b: { lost: 3 }, c: { lost: 0 } })
  })

  it("waits for at most a second, and then charges the units that were taken meanwhile", async () => {
    fakeTimers()
    const { a, b, pass } = two()
    b.fault = () => new Promise(() => undefined)
    a.take(check(3))
    await pass(100)
    b.fault = undefined
    a.take(check(2))
    await pass(100)
    a.take(check(1))
    await pass(100)
    await vi.advanceTimersByTimeAsync(999)
    expect([b.counted(), a.events]).toEqual([0, []])
    await vi.advanceTimersByTimeAsync(1)
    expect(a.events).toMatchObject([{ units: 3, to: "b", error: { kind: "timeout" } }])
    await pass(1)
    expect(b.charges.map((charges) => charges[0]?.units)).toEqual([-3, -3])
    expect(b.counted()).toBe(3)
  })

  it("does not refund units whose charge was lost", async () => {
    const { a, b, pass } = two()
    b.take(check(10))
    await pass(50)
    const after = a.take(check(4)).checks[0]?.state ?? NOTHING
    b.fault = down
    await pass(100)
    b.fault = undefined
    await a.store.refund([{ ...check(), units: 4, after }])
    await pass(1_100)
    const later = a.take(check(0)).checks[0]?.state ?? NOTHING
    expect([a.counted(), b.counted(), later.current]).toEqual([10, 10, 0])
    // A later window is not affected.
    const next = a.store.refund([{ ...check(), units: -3, after: later }])
    await next
    await pass(100)
    await a.store.refund([{ ...check(), units: 2, after: later }])
    await pass(100)
    expect([a.counted(), b.counted()]).toEqual([11, 11])
  })

  it("reports a refund that was lost", async () => {
    const { a, b, pass } = two()
    const after = a.take(check(4)).checks[0]?.state ?? NOTHING
    await pass(100)
    b.fault = down
    await a.store.refund([{ ...check(), units: 4, after }])
    await pass(100)
    expect(a.events).toMatchObject([
      {
        type: "refund-lost",
        error: { message: 'The data center "b" did not confirm refunds: Redis is gone.' },
      },
    ])
    expect(a.store.status?.mirrors).toMatchObject({ b: { lost: 0 } })
  })

  it("rejects a reset and a block, because their outcome is unknown", async () => {
    const { a, b } = two()
    b.fault = down
    a.take(check(3))
    const text = 'The data center "b" did not confirm: Redis is gone. Other data centers may have.'
    await expect(a.store.reset([check()])).rejects.toThrow(text)
    expect(a.counted()).toBe(0)
    const block = { policy: BLOCK, partition: "ann", units: -5_000, after: NOTHING }
    await expect(a.store.refund([block])).rejects.toThrow(text)
  })
})

describe("operations on a client", () => {
  it("wait for charges in flight before a reset, because these charges would count again", async () => {
    const { a, b, pass } = two()
    let arrive = () => {}
    b.fault = () => new Promise((resolve) => (arrive = resolve))
    a.take(check(3))
    await pass(100)
    a.take(check(2))
    const reset = a.store.reset([check()])
    // Units that are taken before the reset are never charged. Units of other counters are charged after the reset.
    a.take(check(1), check(4, { policy: OTHER }))
    await pass(100)
    expect([b.resets.length, b.charges.length]).toEqual([0, 1])
    b.fault = undefined
    arrive()
    await reset
    expect([b.resets.length, b.counted()]).toEqual([1, 0])
    await pass(100)
    expect([b.charges.length, b.counted(), b.counted(OTHER)]).toEqual([2, 0, 4])
  })

  it("charge units that are taken while other data centers are being reset", async () => {
    const { a, b, pass } = two()
    a.take(check(3))
    let arrive = () => {}
    b.fault = () => new Promise((resolve) => (arrive = resolve))
    const reset = a.store.reset([check()])
    await pass(0)
    a.take(check(2))
    await pass(100)
    expect(b.charges).toEqual([])
    b.fault = undefined
    arrive()
    await reset
    await pass(100)
    expect([a.counted(), b.counted()]).toEqual([2, 2])
  })

  it("discard units that were taken before the near store was reset", async () => {
    const { a, b, pass } = two()
    const near = a.shared.reset.bind(a.shared)
    let proceed = () => {}
    a.shared.reset = async (keys) => {
      await new Promise<void>((resolve) => (proceed = resolve))
      await near(keys)
    }
    const reset = a.store.reset([check()])
    await pass(0)
    a.take(check(2))
    proceed()
    await reset
    await pass(100)
    expect([a.counted(), b.counted()]).toEqual([0, 0])
  })

  it("end after a second if another data center does not respond", async () => {
    fakeTimers()
    const { a, b } = two()
    b.fault = () => new Promise(() => undefined)
    const reset = expect(a.store.reset([check()])).rejects.toThrow(
      'The data center "b" did not confirm: The store did not respond within 1000 ms.',
    )
    await vi.advanceTimersByTimeAsync(1_000)
    await reset
  })

  it("block the client in all data centers in one step", async () => {
    const { a, b, clock, pass } = two()
    await a.store.refund([{ policy: BLOCK, partition: "ann", units: -5_000, after: NOTHING }])
    expect(b.charges.length).toBe(1)
    await pass(100)
    expect(b.charges.length).toBe(1)
    clock.advance(-100)
    const blocked = () => b.take(check(1), check(0, { policy: BLOCK })).checks[1]?.state
    expect(blocked()).toMatchObject({ previous: 5_000 })
    clock.advance(5_000)
    expect(blocked()).toMatchObject({ previous: 0 })
  })

  it("block the client even if only some rules are mirrored, and mark that clients are blocked", async () => {
    const { a, b } = two({ rules: (name: string) => name === "user" })
    const blocks = ["user", "other", ""].map((name) => ({
      ...{ policy: { ...BLOCK, name }, partition: name },
      ...{ units: -5_000, after: NOTHING },
    }))
    await a.store.refund(blocks)
    expect(b.charges).toMatchObject([[{ partition: "user" }, { partition: "" }]])
  })
})

describe("closing a mirrored store", () => {
  it("charges the pending units, closes all stores, and ends the timer", async () => {
    const { a, b, pass } = two()
    a.take(check(3))
    await a.store.close()
    expect(b.charges).toMatchObject([[{ units: -3 }]])
    expect(() => a.take(check(1))).toThrow(ClosedError)
    expect(() => a.shared.take([])).toThrow(ClosedError)
    expect(() => b.shared.take([])).toThrow(ClosedError)
    await pass(1_000)
    expect(b.charges.length).toBe(1)
    await expect(a.store.close()).resolves.toBeUndefined()
  })

  it("waits for charges in flight before it closes the other stores", async () => {
    const { a, b, pass } = two()
    let arrive = () => {}
    b.fault = () => new Promise((resolve) => (arrive = resolve))
    a.take(check(3))
    await pass(100)
    a.take(check(2))
    const closed = a.store.close()
    await pass(0)
    expect([b.counted(), b.charges.length]).toEqual([0, 1])
    b.fault = undefined
    arrive()
    await closed
    expect(b.charges.map((charges) => charges[0]?.units)).toEqual([-3, -2])
    expect(() => b.shared.take([])).toThrow(ClosedError)
    expect(a.events).toEqual([])
  })

  it("applies refunds in flight everywhere, and closes far stores even if the near store cannot be closed", async () => {
    const { a, b, pass } = two()
    const after = a.take(check(4)).checks[0]?.state ?? NOTHING
    await pass(100)
    const inner = a.shared.refund.bind(a.shared)
    a.shared.refund = async (refunds) => {
      await new Promise((resolve) => setImmediate(resolve))
      await inner(refunds)
    }
    a.shared.close = () => Promise.reject(new Error("no"))
    const refunded = a.store.refund([{ ...check(), units: 3, after }])
    await expect(a.store.close()).rejects.toThrow("no")
    await refunded
    expect(b.charges.at(-1)).toMatchObject([{ units: 3 }])
    expect(() => b.shared.take([])).toThrow(ClosedError)
  })

  it("leaves no timer", async () => {
    const timers = fakeTimers()
    const [near, far] = [sharedStore(), sharedStore()]
    const store = mirroredStore({ near, far: { far } })
    await store.take([check(1)])
    expect(timers()).toBe(1)
    // A request in flight is answered when the near store closes.
    let answer = () => {}
    const granted = near.take([check(1)])
    near.take = () => new Promise((resolve) => (answer = () => resolve(granted)))
    const taken = store.take([check(1)])
    let arrive = () => {}
    far.refund = () => new Promise((resolve) => (arrive = resolve))
    const closed = store.close()
    await new Promise((resolve) => setImmediate(resolve))
    answer()
    await taken
    arrive()
    await closed
    expect(timers()).toBe(0)
  })
})
