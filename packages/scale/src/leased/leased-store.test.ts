import { ClosedError, manualClock, memoryStore, type Store, StoreUnavailableError } from "@sluice/core"
import {
  type Check,
  type Policy,
  peekStore,
  type Refund,
  type StoreEvent,
  type StoreResult,
} from "@sluice/core/stores"
import { describe, expect, it, onTestFinished, vi } from "vitest"
import { takeEach } from "../../../core/src/stores/testing/take-each.ts"
import { check, SERVICE } from "../testing/shared-memory.ts"
import { leasedStore } from "./leased-store.ts"
import { Leases } from "./leases.ts"
import { leased } from "./testing/shared-memory.ts"

const T = 1_000
const STRICT: Policy = { ...SERVICE, algorithm: "sliding-window-strict", buckets: 60 }
const EVEN: Policy = { ...SERVICE, algorithm: "token-bucket" }
/** A rule that is too small to be leased. */
const CLIENT: Policy = { ...SERVICE, name: "client", counter: "client", limit: 2 }

/** Lets promises settle that do not wait for a clock. */
async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await undefined
}

/** Takes from a lease of at least `units` units. The first request passes through, and its demand is booked. */
function warm({ take }: ReturnType<typeof leased>, units: number, policy = SERVICE): void {
  take(check(units, { policy }))
}

describe("a leased counter", () => {
  it("passes the first requests through, then books up to the demand and grants from it", () => {
    const world = leased()
    const { take, counted, calls, store } = world
    const ledger: [fromLease: boolean, counted: number, held: number][] = []
    for (const cost of [1, 1, 1, 1, 1, 4, 1]) {
      const { granted, isRemembered = false } = take(check(cost))
      expect(granted).toBe(true)
      ledger.push([isRemembered, counted(), store.status?.leases?.held as number])
    }
    // A booking raises what is held to the demand when less than half of it is held.
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

  it("books at most a sixteenth of what is left", () => {
    const world = leased()
    warm(world, 8_000)
    expect(world.store.status?.leases?.held).toBe(500)
  })

  it("reports the booking without the held units, as of the time of the server", () => {
    const world = leased()
    warm(world, 500)
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

  it("sends a request that costs more than is held to the store in full, and keeps what is held", () => {
    const world = leased()
    warm(world, 500)
    const answer = world.take(check(501))
    expect([answer.granted, answer.isRemembered, answer.checks[0]?.ageMs]).toEqual([
      true,
      undefined,
      undefined,
    ])
    expect(world.calls.takes.at(-2)).toEqual([check(501)])
    // The demand is 1,001 now, so 501 units were booked.
    expect(world.store.status?.leases?.held).toBe(1_001)
  })

  it("is the one of its partition", () => {
    const world = leased()
    warm(world, 500)
    expect(world.take(check(1, { partition: "other" })).isRemembered).toBeUndefined()
  })

  it("books with a policy that admits nothing above the limit and counts no refusals", () => {
    const world = leased()
    world.take(check(500, { policy: { ...SERVICE, extra: 100, countRejected: true } }))
    expect(world.calls.takes.at(-1)?.[0]).toStrictEqual(check(500))
  })

  it("ends when its limit changes, and gives back what it holds", () => {
    const world = leased()
    warm(world, 500)
    expect(world.counted()).toBe(1_000)
    const cut = { ...SERVICE, limit: 8_000 }
    expect(world.take(check(1, { policy: cut })).isRemembered).toBeUndefined()
    expect(world.counted()).toBe(501)
    // A ceiling that changes with the spare capacity is not another limit.
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
    // The server's clock shows at most a millisecond more than it has reported, so 98.9 ms later it may be over.
    world.clock.advance(98.4)
    expect(world.take(check(1)).isRemembered).toBe(true)
    world.clock.advance(0.6)
    expect(world.take(check(1)).isRemembered).toBeUndefined()
    expect(world.calls.refunds).toMatchObject([{ units: held - 1 }])
  })

  it("ends when the clock of the process goes back", () => {
    const world = leased()
    world.clock.advance(1_000)
    warm(world, 500)
    world.clock.advance(-1)
    expect(world.take(check(1)).isRemembered).toBeUndefined()
    expect(world.counted()).toBe(501)
  })

  it("ends when the server counts in another window, although its clock should not be there yet", async () => {
    const serverClock = manualClock()
    const memory = memoryStore({ clock: serverClock })
    const world = leased({}, { take: (checks) => memory.take(checks), refund: (all) => memory.refund(all) })
    warm(world, 500)
    serverClock.advance(60_000)
    world.take(check(600))
    await settle()
    expect(world.store.status?.leases).toMatchObject({ booked: 1_400, returned: 500 })
  })

  it("is not booked when the window ends within a round trip and 2 ms", () => {
    const world = leased()
    world.clock.advance(59_998)
    warm(world, 1_600)
    expect(world.store.status?.leases?.booked).toBe(0)
  })

  it("of a bucket keeps the end of each booking, and spends the oldest first", () => {
    const world = leased()
    warm(world, 500, EVEN)
    world.clock.advance(600)
    for (let i = 0; i < 3; i++) world.take(check(100, { policy: EVEN }))
    // The second request left 300 of 700 units, so 400 were booked.
    expect(world.store.status?.leases).toMatchObject({ booked: 900, granted: 300, held: 600 })
    world.clock.advance(398)
    expect(world.take(check(1, { policy: EVEN })).isRemembered).toBe(true)
    world.clock.advance(1)
    expect(world.take(check(1, { policy: EVEN })).isRemembered).toBe(true)
    // They come off the level that their own booking left, of which nearly all has come back.
    const startMs = world.clock.now() - 999
    expect(world.calls.refunds).toMatchObject([{ units: 199, after: { startMs, current: 1_000 } }])
  })

  it("is not held for rules that are not selected, nor below the least limit", () => {
    const world = leased({ rules: (name) => name !== "service" })
    warm(world, 500)
    expect(world.store.status?.leases?.booked).toBe(0)
    const larger = leased({ leastLimit: 16_001 })
    warm(larger, 500)
    expect(larger.store.status?.leases?.booked).toBe(0)
  })

  it("of a rule with a penalty is asked in the store, which counts the refusal", () => {
    const penalty: Policy = { ...SERVICE, counter: "p", algorithm: "penalty", limit: 3 }
    const blocking = { ...penalty, penalty: { refusals: 3, withinMs: 60_000, forMs: [60_000] } }
    const world = leased()
    warm(world, 500)
    const answer = world.take(check(1), check(1, { policy: blocking }))
    expect(answer.isRemembered).toBeUndefined()
    expect(world.calls.takes.find(({ length }) => length === 2)).toBeDefined()
  })

  it("answers each of several requests of a call", async () => {
    const world = leased()
    warm(world, 500)
    const answers = await takeEach(world.store, [[check(100)], [check(700)], [check(15_000)]])
    expect(answers.map(({ granted, isRemembered }) => [granted, isRemembered])).toEqual([
      [true, true],
      [true, undefined],
      [false, undefined],
    ])
    expect(await world.store.take([])).toMatchObject({ granted: true, checks: [] })
  })
})

describe("a store that answers late", () => {
  /** Returns a leased store whose calls are answered when the test says so. */
  function late() {
    const open: (() => void)[] = []
    const memory = memoryStore({ clock: { now: () => world.clock.now() } })
    const world = leased(
      {},
      {
        take: (checks) => new Promise((resolve) => open.push(() => resolve(memory.take(checks)))),
        refund: (refunds) => memory.refund(refunds),
      },
    )
    const peek = (): number => {
      return memory.read([check(0)]).counters[0]?.state.current as number
    }
    return { ...world, open, counted: peek }
  }

  it("delays no request for a booking: all of them go to the store until it is there", async () => {
    const { store, open } = late()
    const first = store.take([check(100)])
    open.shift()?.()
    expect(await first).toMatchObject({ granted: true })
    // The booking is in flight.
    expect(open).toHaveLength(1)
    const second = store.take([check(100)])
    expect(open).toHaveLength(2)
    open.pop()?.()
    expect(await second).toMatchObject({ granted: true })
    // There is never a second booking in flight.
    expect(open).toHaveLength(1)
    open.shift()?.()
    await settle()
    expect(store.status?.leases?.held).toBe(100)
  })

  it("gives a booking back that arrives when its window has ended", async () => {
    const { store, open, clock, counted } = late()
    const first = store.take([check(100)])
    open.shift()?.()
    await first
    const booking = open.shift()
    clock.advance(60_000)
    booking?.()
    await settle()
    // The booking was sent before the window began in which the store carried it out.
    expect(store.status?.leases).toMatchObject({ booked: 100, held: 0, returned: 100 })
    expect(counted()).toBe(0)
  })

  it("gives a booking back that arrives when its limit has changed, or when the store is being closed", async () => {
    const { store, open, counted } = late()
    const first = store.take([check(100)])
    open.shift()?.()
    await first
    const cut = store.take([check(1, { policy: { ...SERVICE, limit: 8_000 } })])
    for (let i = 0; i < 2; i++) open.shift()?.()
    await cut
    await settle()
    expect(counted()).toBe(101)
    const last = store.take([check(300, { policy: { ...SERVICE, limit: 8_000 } })])
    open.shift()?.()
    await last
    const closed = store.close()
    open.shift()?.()
    await closed
    expect(counted()).toBe(401)
  })
})

describe("closing", () => {
  it("waits for calls in flight, gives back what they leave, and then closes the shared store", async () => {
    const order: string[] = []
    let answer = (): void => {}
    const memory = memoryStore({ clock: manualClock() })
    const world = leased(
      {},
      {
        take(checks) {
          const answers = memory.take(checks)
          return new Promise((resolve) => {
            answer = () => resolve(answers)
          })
        },
        refund: (all) => void order.push(...all.map(({ units }) => `refund ${units}`)),
        close: () => void order.push("close"),
      },
    )
    const first = world.store.take([check(100)])
    answer()
    await first
    const closed = world.store.close()
    await settle()
    expect(order).toEqual([])
    answer()
    await closed
    expect(order).toEqual(["refund 100", "close"])
  })
})

describe("a request under several rules", () => {
  it("sends only the checks that no lease covers", () => {
    const world = leased()
    warm(world, 500)
    const client = check(1, { policy: CLIENT, partition: "ann" })
    const answer = world.take(client, check(1))
    expect(world.calls.takes.at(-1)).toEqual([client])
    expect(answer).toMatchObject({
      granted: true,
      checks: [
        { taken: 1, state: { current: 1 } },
        { taken: 1, state: { current: 501 }, ageMs: 0 },
      ],
    })
    expect(answer.isRemembered).toBeUndefined()
  })

  it("takes nothing from the lease when the store refuses the rest", () => {
    const world = leased()
    warm(world, 500)
    const ask = () => world.take(check(1), check(1, { policy: CLIENT, partition: "ann" }))
    expect([ask().granted, ask().granted]).toEqual([true, true])
    const refused = ask()
    expect(refused).toMatchObject({
      granted: false,
      checks: [
        { taken: 0, state: { current: 502 } },
        { taken: 0, state: { current: 2 } },
      ],
    })
    expect(world.store.status?.leases).toMatchObject({ held: 498, granted: 2 })
  })

  it.each([
    [
      "throws",
      () => {
        throw new StoreUnavailableError("gone")
      },
    ],
    ["rejects", () => Promise.reject(new StoreUnavailableError("gone"))],
  ])("takes nothing from the lease when the store %s", async (_, fail) => {
    let isGone = false
    const memory = memoryStore({ clock: manualClock() })
    const take: Store["take"] = (checks) => (isGone ? (fail() as never) : memory.take(checks))
    const { store } = leased({}, { take })
    await store.take([check(500)])
    isGone = true
    const asked = (async () => store.take([check(1), check(1, { policy: CLIENT })]))()
    await expect(asked).rejects.toThrow("gone")
    expect(store.status?.leases).toMatchObject({ held: 500, granted: 0 })
  })

  it("takes nothing from the lease when the store answers with nonsense", () => {
    let isWrong = false
    const memory = memoryStore({ clock: manualClock() })
    const take: Store["take"] = (checks) => (isWrong ? ({ nowMs: 0 } as never) : memory.take(checks))
    const { store } = leased({}, { take })
    void store.take([check(500)])
    isWrong = true
    const other = { ...SERVICE, counter: "other" }
    expect(() => store.take([check(1), check(1, { policy: other })])).toThrow("invalid answer")
    expect(store.status?.leases).toMatchObject({ held: 500, granted: 0 })
  })

  it("gives units back to the store when their window has ended meanwhile", async () => {
    let refuse = (): void => {}
    const refunds: Refund[] = []
    const memory = memoryStore({ clock: manualClock() })
    const take: Store["take"] = (checks) => {
      if (checks[0]?.policy !== CLIENT) return memory.take(checks)
      return new Promise((resolve) => {
        refuse = () => {
          const nowMs = world.clock.now()
          const state = { startMs: nowMs, current: CLIENT.limit, previous: 0 }
          resolve({ nowMs, granted: false, checks: [{ state, taken: 0 }] })
        }
      })
    }
    const clock = { now: () => world.clock.now() }
    const world = leased({ clock }, { take, refund: (all) => void refunds.push(...all) })
    world.store.take([check(500)])
    const asked = world.store.take([check(7), check(1, { policy: CLIENT })])
    world.clock.advance(120_000)
    refuse()
    expect(await asked).toMatchObject({ granted: false })
    expect(refunds.map(({ units }) => units)).toEqual([7, 493])
  })

  it("counts one rule twice if it is listed twice", () => {
    const world = leased()
    warm(world, 500)
    expect(world.take(check(300), check(200)).isRemembered).toBe(true)
    expect(world.store.status?.leases?.granted).toBe(500)
  })
})

describe("refunds", () => {
  const afterOf = ({ checks }: StoreResult) => {
    const [counted] = checks
    if (counted === undefined) throw new Error("not counted")
    return counted.after ?? counted.state
  }

  it("return to the lease while its window lasts, and to the store afterwards", async () => {
    const world = leased()
    warm(world, 500)
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
    const world = leased()
    warm(world, 500)
    const after = afterOf(world.take(check(10)))
    const refund = change({ policy: SERVICE, partition: "", units: 4, after })
    await world.store.refund([refund])
    expect([world.store.status?.leases?.held, world.calls.refunds]).toEqual([490, [refund]])
  })

  it.each([EVEN, { ...EVEN, refill: "periodic" } as const])(
    "of a bucket go to the store (%o)",
    async (policy) => {
      const world = leased()
      warm(world, 500, policy)
      const after = afterOf(world.take(check(10, { policy })))
      await world.store.refund([{ policy, partition: "", units: 4, after }])
      expect([world.store.status?.leases?.held, world.calls.refunds.length]).toEqual([490, 1])
    },
  )

  it("of a lease and of the store have an unknown outcome if the store fails, so that no retry applies one twice", async () => {
    const failure = new StoreUnavailableError("down", { outcome: "not-applied" })
    const world = leased({}, { refund: () => Promise.reject(failure) })
    warm(world, 500)
    const answer = world.take(check(10), check(1, { policy: CLIENT }))
    const held = world.store.status?.leases?.held as number
    const refunds = [SERVICE, CLIENT].map((policy, i): Refund => {
      const { taken = 0, state, after = state } = answer.checks[i] ?? {}
      return { policy, partition: "", units: taken, after: after as Refund["after"] }
    })
    await expect(world.store.refund(refunds)).rejects.toMatchObject({ outcome: "unknown", cause: failure })
    expect(world.store.status?.leases?.held).toBe(held + 10)
    await expect(world.store.refund(refunds.slice(1))).rejects.toMatchObject({ outcome: "not-applied" })
  })
})

describe("peek", () => {
  it("asks the store, and counts the held units of this process as left", async () => {
    const world = leased()
    warm(world, 500)
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
  it("drops the lease and gives nothing back, as the store forgets the units", async () => {
    const world = leased()
    warm(world, 500)
    await world.store.reset([{ policy: SERVICE, partition: "" }])
    expect([world.counted(), world.store.status?.leases?.held, world.calls.refunds]).toEqual([0, 0, []])
    expect(world.take(check(1)).isRemembered).toBeUndefined()
  })

  it("refunds what is held if the store certainly did not reset", async () => {
    const failure = new StoreUnavailableError("down", { outcome: "not-applied" })
    const world = leased({}, { reset: () => Promise.reject(failure) })
    warm(world, 500)
    await expect(world.store.reset([{ policy: SERVICE, partition: "" }])).rejects.toBe(failure)
    expect([world.counted(), world.store.status?.leases]).toMatchObject([
      500,
      { held: 0, returned: 500, lost: 0 },
    ])
  })

  it("counts what is held as lost if it is unknown whether the store did reset", async () => {
    const world = leased({}, { reset: () => Promise.reject(new Error("down")) })
    const events: StoreEvent[] = []
    world.store.subscribe?.((event) => events.push(event))
    warm(world, 500)
    await expect(world.store.reset([{ policy: SERVICE, partition: "" }])).rejects.toThrow("down")
    expect(world.store.status?.leases).toMatchObject({ held: 0, returned: 0, lost: 500 })
    expect(events.map(({ type }) => type)).toEqual(["refund-lost"])
  })

  it("waits for refunds that are on their way, which would take off units of other processes", async () => {
    const order: string[] = []
    let answer = (): void => {}
    const world = leased(
      {},
      {
        refund: () => {
          order.push("refund")
          return new Promise<void>((resolve) => {
            answer = resolve
          })
        },
        reset: () => void order.push("reset"),
      },
    )
    warm(world, 500)
    // Another limit ends the lease, and its units are on their way back.
    world.take(check(1, { policy: { ...SERVICE, limit: 8_000 } }))
    const done = world.store.reset([{ policy: SERVICE, partition: "" }])
    await settle()
    expect(order).toEqual(["refund"])
    answer()
    await done
    expect(order).toEqual(["refund", "reset"])
  })

  it("drops what was booked while the store was deleting the counter", async () => {
    let reset = (): void => {}
    const memory = memoryStore({ clock: manualClock() })
    const world = leased(
      {},
      {
        take: (checks) => memory.take(checks),
        reset: () =>
          new Promise((resolve) => {
            reset = resolve
          }),
      },
    )
    const done = world.store.reset([{ policy: SERVICE, partition: "" }])
    warm(world, 500)
    expect(world.store.status?.leases?.held).toBe(500)
    reset()
    await done
    expect([world.store.status?.leases?.held, world.calls.refunds]).toEqual([0, []])
  })

  it("drops a booking that was in flight", async () => {
    let answer = (): void => {}
    const memory = memoryStore({ clock: manualClock() })
    const refunds: Refund[] = []
    const world = leased(
      {},
      {
        take: (checks) =>
          new Promise((resolve) => {
            const answers = memory.take(checks)
            answer = () => resolve(answers)
          }),
        refund: (all) => void refunds.push(...all),
      },
    )
    const first = world.store.take([check(500)])
    answer()
    await first
    const reset = world.store.reset([{ policy: SERVICE, partition: "" }])
    answer()
    await reset
    await settle()
    expect([world.store.status?.leases?.held, refunds]).toEqual([0, []])
  })
})

describe("units that are not used", () => {
  it("are given back T after the latest booking", async () => {
    const world = leased()
    warm(world, 500)
    world.clock.advance(T - 1)
    await settle()
    expect(world.counted()).toBe(1_000)
    world.clock.advance(1)
    await settle()
    expect([world.counted(), world.store.status?.leases?.held, world.store.status?.leases?.returned]).toEqual(
      [500, 0, 500],
    )
  })

  it("are given back when the sub-window ends", async () => {
    const world = leased()
    world.clock.advance(600)
    warm(world, 500, STRICT)
    expect(world.store.status?.leases?.held).toBe(200)
    world.clock.advance(400)
    await settle()
    expect([world.counted(STRICT), world.store.status?.leases?.held]).toEqual([500, 0])
  })

  it("are given back when the store is closed", async () => {
    const world = leased()
    warm(world, 500)
    let counted = 0
    const close = (): void => {
      counted = world.counted()
    }
    const closing = leasedStore({ ...world.shared, close }, { clock: world.clock })
    closing.take([check(100)])
    expect(world.counted()).toBe(1_200)
    await closing.close()
    expect(counted).toBe(1_100)
  })

  it("are lost if the store does not take them back, and an event reports it", async () => {
    const failures: (() => void | Promise<void>)[] = [
      () => Promise.reject(new StoreUnavailableError("gone")),
      () => {
        throw new Error("broken")
      },
    ]
    const world = leased({}, { refund: () => failures.shift()?.() })
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

  it("are of at most 10,000 counters in use, because each further one would end the lease of another", () => {
    const opened: string[] = []
    const rules = (name: string): boolean => opened.push(name) > 0
    const world = leased({ rules })
    world.take(check(100, { partition: "first" }))
    for (let i = 0; i < 9_999; i++) world.take(check(1, { partition: `${i}` }))
    world.clock.advance(2 * T - 1)
    for (let i = 0; i < 9_999; i++) world.take(check(1, { partition: `${i}` }))
    expect([world.calls.refunds, opened.length]).toEqual([[], 10_000])
    // Each of these two asks the shared store, and is not leased.
    for (let i = 0; i < 2; i++) expect(world.take(check(1, { partition: "last" })).granted).toBe(true)
    expect([world.calls.refunds, opened.length]).toEqual([[], 10_002])
    // The first counter has not been asked for since 2 T. Some of the calls look at its lease.
    world.clock.advance(1)
    for (let i = 0; i < 1_000; i++) world.take(check(1, { partition: "last" }))
    expect(opened.length).toBeLessThan(11_002)
    expect(world.calls.refunds).toMatchObject([{ partition: "first", units: 100 }])
  })

  it("leave nothing behind: the lease of a counter that is not asked for is forgotten", async () => {
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

  it("are given back after the machine was suspended, which stops the monotonic clock only", async () => {
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
  it("is tried again 10 ms later, and the lease grants until then", async () => {
    let isGone = false
    let takes = 0
    const memory = memoryStore({ clock: manualClock() })
    const world = leased(
      {},
      {
        take(checks) {
          takes++
          return isGone ? Promise.reject(new StoreUnavailableError("gone")) : memory.take(checks)
        },
      },
    )
    warm(world, 500)
    isGone = true
    takes = 0
    const ledger: number[] = []
    for (const afterMs of [0, 0, 9, 1]) {
      world.clock.advance(afterMs)
      expect(world.take(check(100)).isRemembered).toBe(true)
      await settle()
      ledger.push(takes)
    }
    expect(ledger).toEqual([0, 1, 1, 2])
  })

  it("at a store without a deadline of its own ends at the request's, and what is booked later is refunded", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    onTestFinished(() => void vi.useRealTimers())
    const answers: (() => void)[] = []
    const memory = memoryStore({ clock: manualClock() })
    const refunds: Refund[] = []
    const world = leased(
      {},
      {
        take: (checks) => new Promise((resolve) => void answers.push(() => resolve(memory.take(checks)))),
        refund: (some) => void refunds.push(...some),
      },
    )
    const first = world.store.take([check(500)], 50)
    await settle()
    answers.shift()?.()
    await first
    await settle()
    expect(answers).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(60)
    world.clock.advance(60)
    // The booking is over, so another one may begin.
    void world.store.take([check(1)], 50)
    await settle()
    expect(answers).toHaveLength(3)
    answers.shift()?.()
    await settle()
    expect(refunds).toMatchObject([{ units: 500 }])
  })
})

describe("a leased store", () => {
  it("has the properties of the shared store, and passes on its events", () => {
    const listeners = new Set<(event: StoreEvent) => void>()
    const subscribe: Store["subscribe"] = (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    }
    const more = { status: { openBreakers: 2, recentRoundTripsMs: [1, 2] }, subscribe }
    const { store } = leased({}, more)
    expect(store).toMatchObject({
      isShared: true,
      status: { openBreakers: 2, recentRoundTripsMs: [1, 2] },
    })
    const events: StoreEvent[] = []
    const stop = store.subscribe?.((event) => events.push(event))
    const event = { type: "evicted", counters: 1, emptyAfterMs: 0, releaseAfterMs: 0 } as const
    for (const listener of listeners) listener(event)
    stop?.()
    expect([events, listeners.size]).toEqual([[event], 0])
  })

  it("passes the deadline of the request on, also to its booking", () => {
    const deadlines: unknown[] = []
    const memory = memoryStore({ clock: manualClock() })
    const { store } = leased(
      {},
      {
        take(checks, withinMs) {
          deadlines.push(withinMs)
          return memory.take(checks)
        },
      },
    )
    store.take([check(500)], 70)
    expect(deadlines).toEqual([70, 70])
  })

  it("grants nothing after it was closed", async () => {
    const world = leased()
    warm(world, 500)
    const closed = world.store.close()
    expect(() => world.take(check(1))).toThrow(ClosedError)
    await closed
  })

  const shared = Object.assign(memoryStore(), { isShared: true })
  it.each([
    ["not shared", () => leasedStore(memoryStore()), "store: is not shared"],
    ["leased already", () => leasedStore(leasedStore(shared)), "store: is leased already"],
    ["not a store", () => leasedStore({} as Store), "store: {} is not a store"],
    ["no store", () => leasedStore(undefined as never), "store: undefined is not a store"],
    ["a time", () => leasedStore(shared, { leaseMs: 0.5 }), "leaseMs: 0.5 is not a valid time"],
    ["a time of 0", () => leasedStore(shared, { leaseMs: 0 }), "leaseMs: 0 is not a valid time"],
    ["a limit", () => leasedStore(shared, { leastLimit: -1 }), "leastLimit: -1 is not a valid limit"],
    ["rules", () => leasedStore(shared, { rules: ["a"] as never }), 'rules: ["a"] is not a function'],
    ["a clock", () => leasedStore(shared, { clock: {} as never }), "clock: {} is not a clock"],
    ["a name", () => leasedStore(shared, { leasMs: 5 } as never), 'did you mean "leaseMs"?'],
    ["no options", () => leasedStore(shared, null as never), "null is not an options object"],
  ])("rejects invalid options: %s", (_, create, message) => {
    expect(create).toThrow(message)
  })
})
