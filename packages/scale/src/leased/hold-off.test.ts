import { memoryStore } from "@sluice/core"
import { type Check, type Policy, peekStore, type StoreResult } from "@sluice/core/stores"
import { describe, expect, it } from "vitest"
import { check, SERVICE } from "../testing/shared-memory.ts"
import { leased } from "./testing/shared-memory.ts"

const FIXED: Policy = { ...SERVICE, algorithm: "fixed-window" }
const LIMIT = SERVICE.limit

function of(cost: number, policy: Policy = FIXED, more: Partial<Check> = {}): Check {
  return check(cost, { policy, ...more })
}

/** Returns a store whose whole limit is taken, or all but `left` units. T is 1 s. */
function full(left = 0) {
  const world = leased()
  // Another process takes the units.
  void world.shared.take([of(LIMIT - left)])
  world.calls.takes.length = 0
  return world
}

/** Returns whether the request was granted, whether the store was asked, and the length of the hold-off. */
function asked(world: ReturnType<typeof leased>, ...checks: Check[]) {
  const before = world.calls.takes.length
  const { granted, againAfterMs = 0 } = world.take(...checks)
  return [granted, world.calls.takes.length - before, againAfterMs]
}

describe("the hold-off after a refusal", () => {
  it("lasts 10 ms, and doubles up to T / 2 while the store grants few units", () => {
    const world = full()
    const ledger: unknown[] = []
    for (const afterMs of [0, 9, 1, 19, 1, 40, 80, 160, 320, 500, 499]) {
      world.clock.advance(afterMs)
      ledger.push([afterMs, ...asked(world, of(1))])
    }
    expect(ledger).toEqual([
      [0, false, 1, 10],
      [9, false, 0, 1],
      [1, false, 1, 20],
      [19, false, 0, 1],
      [1, false, 1, 40],
      [40, false, 1, 80],
      [80, false, 1, 160],
      [160, false, 1, 320],
      [320, false, 1, 500],
      [500, false, 1, 500],
      [499, false, 0, 1],
    ])
  })

  it("is halved when many units were granted since the previous refusal", () => {
    const world = full()
    const refuse = (afterMs: number) => {
      world.clock.advance(afterMs)
      return asked(world, of(1))[2]
    }
    expect([refuse(0), refuse(10), refuse(20)]).toEqual([10, 20, 40])
    const grant = (units: number) => {
      world.clock.advance(40)
      void world.shared.refund([{ policy: FIXED, partition: "", units, after: stateOf(world.take(of(0))) }])
      expect(world.take(of(units)).granted).toBe(true)
    }
    grant(65)
    expect(refuse(0)).toBe(20)
    grant(8)
    expect(refuse(0)).toBe(20)
    grant(64)
    expect(refuse(0)).toBe(20)
    grant(7)
    expect(refuse(0)).toBe(40)
  })

  it("repeats the refusal with its original time, and reports its own remaining length", () => {
    const world = full()
    world.clock.advance(0.5)
    const refused = world.take(of(2))
    world.clock.advance(3.25)
    const startMs = refused.nowMs
    expect(world.take(of(2))).toStrictEqual({
      nowMs: startMs,
      granted: false,
      checks: [{ state: { startMs, current: LIMIT, previous: 0 }, taken: 0, ageMs: 4 }],
      isRemembered: true,
      againAfterMs: 7,
    })
  })

  it("covers only checks of at least the same cost and at most the same limit and ceiling", () => {
    const cut = { ...FIXED, extra: 10 }
    const rows: readonly [what: string, one: Check, isAsked: boolean][] = [
      ["the same", of(5), false],
      ["a higher cost", of(6), false],
      ["a lower cost", of(4), true],
      ["a higher ceiling", of(5, cut), true],
      ["a shadow check", of(5, FIXED, { shadow: true }), true],
      ["refusals that count", of(5, { ...FIXED, countRejected: true }), true],
      ["another partition", of(5, FIXED, { partition: "other" }), true],
    ]
    for (const [what, one, isAsked] of rows) {
      const world = full()
      expect(asked(world, of(5))).toEqual([false, 1, 10])
      const before = world.calls.takes.length
      world.take(one)
      expect([what, world.calls.takes.length > before]).toEqual([what, isAsked])
    }
  })

  it("never covers a request with a penalty, because the store must count every refusal", () => {
    const penalty: Policy = {
      ...SERVICE,
      counter: "p",
      algorithm: "penalty",
      limit: 3,
      penalty: { refusals: 3, withinMs: 60_000, forMs: [60_000] },
    }
    const client = of(1, { ...FIXED, counter: "client", limit: 2 }, { partition: "ann" })
    const world = full()
    expect(asked(world, of(1))).toEqual([false, 1, 10])
    expect(asked(world, of(1), client, of(1, penalty))).toEqual([false, 1, 0])
    expect(asked(world, of(1), client)).toEqual([false, 0, 10])
  })

  it("is not begun by a peek, and does not cover a peek", async () => {
    const world = full()
    const peek = async () => (await peekStore(world.store, [of(1)])) as StoreResult
    expect(await peek()).toMatchObject({ granted: false })
    expect(asked(world, of(1))).toEqual([false, 1, 10])
    void world.shared.reset([{ policy: FIXED, partition: "" }])
    expect(await peek()).toMatchObject({ granted: true })
  })

  it("is not begun by a shadow check, or by a refusal that the store only remembers", () => {
    const world = full()
    world.take(of(1, FIXED, { shadow: true }))
    expect(world.store.status?.leases?.heldOff).toBe(0)
    const memory = memoryStore()
    const remembering = leased({}, {}, { take: (checks) => ({ ...memory.take(checks), isRemembered: true }) })
    void memory.take([of(LIMIT)])
    remembering.take(of(1))
    expect(remembering.store.status?.leases?.heldOff).toBe(0)
  })

  it("is begun only by the rule that refuses, and not by other rules of the request", () => {
    const other = { ...FIXED, counter: "other" }
    const world = full()
    expect(asked(world, of(1, other), of(1))).toEqual([false, 1, 10])
    expect(asked(world, of(1, other))[0]).toBe(true)
    // The rules that the store did not refuse are unknown in a repeated refusal.
    expect(world.take(of(100, other), of(1)).checks).toMatchObject([undefined, { state: { current: LIMIT } }])
    expect(world.store.status?.leases?.heldOff).toBe(1)
  })

  it("reports the refusal with the longest wait if several rules refuse", () => {
    const daily = { ...FIXED, counter: "daily", windowMs: 86_400_000 }
    const world = leased()
    void world.shared.take([of(LIMIT), of(LIMIT, daily)])
    expect(asked(world, of(1, daily))).toEqual([false, 1, 10])
    world.clock.advance(1)
    expect(asked(world, of(1))).toEqual([false, 1, 10])
    const states = world.take(of(1), of(1, daily)).checks.map((one) => one?.ageMs)
    expect(states).toEqual([undefined, 1])
    expect(world.take(of(1, daily), of(1)).checks.map((one) => one?.ageMs)).toEqual([1, undefined])
  })

  it("ends when this process refunds units or resets the counter, and when the clock is set back", async () => {
    const world = full(1)
    const taken = world.take(of(1))
    expect(asked(world, of(1))).toEqual([false, 1, 10])
    await world.store.refund([{ policy: FIXED, partition: "", units: 1, after: stateOf(taken) }])
    expect(asked(world, of(1))).toEqual([true, 1, 0])
    expect(asked(world, of(1))[0]).toBe(false)
    await world.store.reset([{ policy: FIXED, partition: "" }])
    expect(asked(world, of(LIMIT))).toEqual([true, 1, 0])
    expect(asked(world, of(1))).toEqual([false, 1, 10])
    world.clock.advance(-1)
    expect(asked(world, of(1))[1]).toBe(1)
  })

  it("is not prolonged by refusals of requests that it does not cover", () => {
    const world = full()
    expect(asked(world, of(5))).toEqual([false, 1, 10])
    world.clock.advance(4)
    expect(asked(world, of(3))).toEqual([false, 1, 6])
    expect(asked(world, of(3))).toEqual([false, 0, 6])
    world.clock.advance(6)
    expect(asked(world, of(3))).toEqual([false, 1, 20])
  })

  it("counts requests that are refused together as one refusal", async () => {
    const world = leased({}, { slow: ["take"] })
    void world.others.take([of(LIMIT)])
    const asking = [5, 3, 4].map((cost) => world.store.take([of(cost)]))
    for (const answer of world.waiting) answer()
    const again = (await Promise.all(asking)).map((answer) => answer.againAfterMs)
    expect(again).toEqual([10, 10, 10])
    // The cheapest of these requests is also refused.
    expect(world.store.take([of(3)])).toMatchObject({ granted: false, isRemembered: true })
  })

  it("stops bookings, so that a refused process does not ask for more units", () => {
    const world = leased()
    world.take(of(500))
    expect(asked(world, of(LIMIT))).toEqual([false, 1, 10])
    world.take(of(400))
    expect(world.store.status?.leases?.booked).toBe(500)
    world.clock.advance(10)
    world.take(of(1))
    expect(world.store.status?.leases?.booked).toBeGreaterThan(500)
  })
})

function stateOf({ checks }: StoreResult) {
  const [counted] = checks
  if (counted === undefined) throw new Error("not counted")
  return counted.after ?? counted.state
}
