import { ClosedError, memoryStore, type Store, StoreUnavailableError } from "@sluice/core"
import {
  type ChargesLostEvent,
  type Check,
  type Counted,
  type Policy,
  peekStore,
  type Refund,
  type StoreEvent,
  type StoreResult,
} from "@sluice/core/stores"
import { describe, expect, it } from "vitest"
import { takeEach } from "../../../core/src/stores/testing/take-each.ts"
import { leasedStore } from "../leased/leased-store.ts"
import { sharedMemory } from "../testing/shared-memory.ts"
import { type WriteBackStoreOptions, writeBackStore } from "./write-back-store.ts"

const SETTLE_MS = 100
const CLIENT: Policy = {
  name: "client",
  counter: "client",
  algorithm: "sliding-window",
  limit: 10,
  windowMs: 60_000,
  align: "epoch",
}
const BUCKET: Policy = { ...CLIENT, name: "bucket", counter: "bucket", algorithm: "token-bucket" }
/** A rule that is passed on, with room for a single request. */
const LOG: Policy = { ...CLIENT, name: "log", counter: "log", algorithm: "sliding-log", limit: 1 }

function check(cost = 1, policy = CLIENT, more: Partial<Check> = {}): Check {
  return { policy, partition: "ann", cost, shadow: false, ...more }
}

/** Lets promises settle that do not wait for a clock. */
async function settle(): Promise<void> {
  for (let i = 0; i < 40; i++) await undefined
}

/** Creates a store that writes back. `over` replaces methods of the shared store. */
function open(options: WriteBackStoreOptions = {}, over: Partial<Store> = {}) {
  const memory = sharedMemory(over)
  const { shared, clock } = memory
  const store = writeBackStore(shared, { clock, ...options })
  const take = (...checks: Check[]) => store.take(checks) as StoreResult
  return {
    ...memory,
    store,
    take,
    /** Takes units one by one. Returns how many were granted. */
    takeEach: (units: number, policy = CLIENT) =>
      Array.from({ length: units }, () => take(check(1, policy)).granted).filter(Boolean).length,
    /** Another process takes units. */
    other: (cost: number, policy = CLIENT) => void shared.take([check(cost, policy)]),
    counted: (policy = CLIENT, partition = "ann") => memory.counted(policy, partition),
    async pass(ms = SETTLE_MS) {
      clock.advance(ms)
      await settle()
    },
  }
}

const GONE = new StoreUnavailableError("gone", { outcome: "not-applied" })
const UNKNOWN = new StoreUnavailableError("late", { kind: "timeout" })

/** A store whose methods fail while `error` is set. */
function failing(methods: readonly ("refund" | "read" | "reset" | "take")[]) {
  const fault: { error: Error | undefined } = { error: undefined }
  const memory = memoryStore({ clock: { now: () => world.clock.now() } })
  const over = Object.fromEntries(
    methods.map((name) => [
      name,
      (argument: never) => (fault.error === undefined ? memory[name](argument) : Promise.reject(fault.error)),
    ]),
  )
  const all = { take: memory.take, read: memory.read, refund: memory.refund, reset: memory.reset }
  const bound = Object.fromEntries(Object.entries(all).map(([name, method]) => [name, method.bind(memory)]))
  const world = open({}, { ...bound, ...over })
  const counted = (policy = CLIENT) => {
    const { current = 0, previous = 0 } = memory.read([check(0, policy)]).counters[0]?.state ?? {}
    return current + previous
  }
  const lost: ChargesLostEvent[] = []
  world.store.subscribe?.((event) => {
    if (event.type === "charges-lost") lost.push(event)
  })
  return { ...world, counted, fault, lost }
}

describe("a counter that is written back", () => {
  it("grants up to the limit without asking the shared store", () => {
    const { take, calls } = open()
    const ledger = Array.from({ length: 12 }, () => {
      const { granted, checks } = take(check())
      return [granted, checks[0]?.state.current, checks[0]?.taken]
    })
    expect(ledger.slice(0, 2)).toEqual([
      [true, 1, 1],
      [true, 2, 1],
    ])
    expect(ledger.slice(9)).toEqual([
      [true, 10, 1],
      [false, 10, 0],
      [false, 10, 0],
    ])
    expect([calls.takes, calls.reads, calls.refunds]).toEqual([[], [], []])
  })

  it("charges its units after settleMs, in one call, and then asks for the shared count", async () => {
    const { takeEach, counted, calls, pass } = open()
    takeEach(4)
    await pass(SETTLE_MS - 1)
    expect([counted(), calls.reads]).toEqual([0, []])
    await pass(1)
    expect(counted()).toBe(4)
    expect(calls.refunds).toMatchObject([{ partition: "ann", units: -4 }])
    expect(calls.reads).toEqual([[check(0)]])
    // Nothing is charged twice.
    await pass(10 * SETTLE_MS)
    expect([counted(), calls.reads.length]).toEqual([4, 1])
  })

  it("knows the units of other processes after it has settled", async () => {
    const { takeEach, other, pass, take } = open()
    other(7)
    expect(takeEach(5)).toBe(5)
    await pass()
    // 12 units were granted. They count until their window passes.
    expect(take(check())).toMatchObject({ granted: false, checks: [{ state: { current: 12 } }] })
  })

  it("keeps what it grants while it settles", async () => {
    const answers: (() => void)[] = []
    const memory = memoryStore({ clock: { now: () => world.clock.now() } })
    const world = open(
      {},
      {
        refund: (some) => new Promise((resolve) => answers.push(() => resolve(memory.refund(some)))),
        read: (checks) => new Promise((resolve) => answers.push(() => resolve(memory.read(checks)))),
      },
    )
    expect(world.takeEach(4)).toBe(4)
    await world.pass()
    expect(world.takeEach(3)).toBe(3)
    answers.shift()?.()
    await settle()
    expect(world.takeEach(2)).toBe(2)
    answers.shift()?.()
    await settle()
    expect(world.takeEach(9)).toBe(1)
  })

  it("is settled again when it was due while it was being settled", async () => {
    const answers: (() => void)[] = []
    const memory = memoryStore({ clock: { now: () => world.clock.now() } })
    const charged: number[] = []
    const world = open(
      {},
      {
        refund(some) {
          charged.push(...some.map(({ units }) => units))
          return new Promise((resolve) => answers.push(() => resolve(memory.refund(some))))
        },
        read: (checks) => memory.read(checks),
      },
    )
    world.takeEach(4)
    await world.pass()
    world.takeEach(3)
    await world.pass()
    // It is never settled twice at a time, because an older answer could then replace a newer one.
    expect(charged).toEqual([-4])
    answers.shift()?.()
    await settle()
    expect(charged).toEqual([-4, -3])
    answers.shift()?.()
    await settle()
    expect(world.takeEach(9)).toBe(3)
  })

  it("works off units above the limit, before it grants more", async () => {
    const debt: Policy = { ...BUCKET, counter: "debt" }
    const { takeEach, other, pass, take, counted } = open()
    other(9, debt)
    expect(takeEach(9, debt)).toBe(9)
    await pass()
    // 18 of 10 units are in use, and one comes back every 6 s.
    expect([take(check(1, debt)).granted, counted(debt)]).toEqual([false, 18])
    await pass(9 * 6_000 - SETTLE_MS - 1)
    expect(takeEach(9, debt)).toBe(0)
    await pass(1)
    expect(takeEach(9, debt)).toBe(1)
  })

  it("of a bucket is charged in full, although units have come back in the process meanwhile", async () => {
    const fast: Policy = { ...BUCKET, counter: "fast", limit: 100, burst: 10, windowMs: 1_000 }
    const { takeEach, counted, pass } = open()
    takeEach(2, fast)
    await pass()
    // In the process, the bucket is full again. Another process may have used what came back.
    expect(counted(fast)).toBe(2)
  })

  it("of a bucket adds what it granted while it settled in full", async () => {
    const fast: Policy = { ...BUCKET, counter: "fast", limit: 100, burst: 10, windowMs: 1_000 }
    let answer = (): void => {}
    const memory = memoryStore({ clock: { now: () => world.clock.now() } })
    const world = open(
      {},
      {
        refund: (some) => memory.refund(some),
        read: (checks) =>
          new Promise((resolve) => {
            const answers = memory.read(checks)
            answer = () => resolve(answers)
          }),
      },
    )
    world.takeEach(1, fast)
    await world.pass()
    // Another process fills the bucket. This process grants 6 units before it knows, of which all come back.
    memory.take([check(9, fast)])
    world.takeEach(6, fast)
    world.clock.advance(70)
    answer()
    await settle()
    // One unit was charged and 6 are pending, of which none has come back for others.
    expect(world.take(check(0, fast)).checks[0]?.state.current).toBe(6)
  })

  it.each([
    ["fixed-window", {}],
    ["fixed-window", { align: "first-hit" }],
    ["sliding-window", { buckets: 10 }],
    ["sliding-window-strict", { buckets: 60 }],
    ["token-bucket", {}],
    ["token-bucket", { refill: "periodic" }],
  ] as const)("counts by %s %o", async (algorithm, members) => {
    const policy: Policy = { ...CLIENT, counter: algorithm, algorithm, ...members }
    const { takeEach, counted, calls, pass } = open()
    expect([takeEach(6, policy), calls.takes]).toEqual([6, []])
    await pass()
    expect([counted(policy), takeEach(6, policy)]).toEqual([6, 4])
    await pass()
    expect(counted(policy)).toBe(10)
  })

  it("charges units to the sub-window in which they were taken", async () => {
    const strict: Policy = { ...CLIENT, counter: "strict", algorithm: "sliding-window-strict", buckets: 60 }
    const { takeEach, clock, calls, pass } = open()
    clock.advance(950)
    takeEach(2, strict)
    clock.advance(49)
    takeEach(1, strict)
    clock.advance(1)
    takeEach(4, strict)
    await pass(SETTLE_MS)
    const startMs = Date.UTC(2024, 0, 1)
    expect(calls.refunds).toMatchObject([
      { units: -3, after: { startMs } },
      { units: -4, after: { startMs: startMs + 1_000 } },
    ])
  })

  it("reports how old the shared count is", async () => {
    const { take, clock, pass } = open()
    const ageMs = () => take(check(0)).checks[0]?.ageMs
    expect(ageMs()).toBe(0)
    clock.advance(30.5)
    // There is no shared count yet. The process has counted for 30.5 ms.
    expect(ageMs()).toBe(31)
    await pass(69.5)
    clock.advance(12)
    expect(ageMs()).toBe(12)
  })

  it.each([5_000, -5_000])(
    "counts in the time of the shared store once it is known (%s)",
    async (aheadMs) => {
      const serverClock = { now: () => world.clock.now() + aheadMs }
      const memory = memoryStore({ clock: serverClock })
      const world = open({}, { refund: (some) => memory.refund(some), read: (checks) => memory.read(checks) })
      const startedMs = world.clock.now()
      expect(world.take(check()).nowMs).toBe(startedMs)
      await world.pass()
      expect(world.take(check()).nowMs).toBe(startedMs + SETTLE_MS + aheadMs)
      // New counters start with the same time.
      world.clock.advance(0.5)
      expect(world.take(check(1, CLIENT, { partition: "bob" })).nowMs).toBe(startedMs + SETTLE_MS + aheadMs)
    },
  )

  it("does not go back in time when an answer was slow", async () => {
    const answers: (() => void)[] = []
    const memory = memoryStore({ clock: { now: () => world.clock.now() } })
    const world = open(
      {},
      {
        refund: (some) => memory.refund(some),
        read: (checks) =>
          new Promise((resolve) => {
            const all = memory.read(checks)
            answers.push(() => resolve(all))
          }),
      },
    )
    const fixed: Policy = { ...CLIENT, counter: "fixed", algorithm: "fixed-window" }
    world.clock.advance(59_895)
    world.takeEach(4, fixed)
    await world.pass()
    // The answer is of the window before. These units were taken in the next one.
    world.clock.advance(8)
    expect(world.takeEach(6, fixed)).toBe(6)
    answers.shift()?.()
    await settle()
    expect(world.takeEach(9, fixed)).toBe(4)
  })

  it("is asked for only if it was used: a refused counter that nobody asks for is not peeked at", async () => {
    const { takeEach, calls, pass } = open()
    takeEach(11)
    for (let i = 0; i < 5; i++) await pass()
    expect(calls.reads).toHaveLength(1)
    takeEach(1)
    for (let i = 0; i < 5; i++) await pass()
    expect(calls.reads).toHaveLength(2)
  })

  it("is charged by calls of its own, and asked for with up to 63 others", async () => {
    let charges = 0
    const asked: number[] = []
    const memory = memoryStore({ clock: { now: () => world.clock.now() } })
    const world = open(
      {},
      {
        refund(some) {
          charges++
          return memory.refund(some)
        },
        read(checks) {
          asked.push(checks.length)
          return memory.read(checks)
        },
      },
    )
    for (let i = 0; i < 100; i++) world.take(check(1, CLIENT, { partition: `${i}` }))
    await world.pass()
    expect({ charges, asked }).toEqual({ charges: 100, asked: [64, 36] })
  })

  it("is learned although another one in the same call fails", async () => {
    const memory = memoryStore({ clock: { now: () => world.clock.now() } })
    const world = open(
      {},
      {
        refund: (some) => memory.refund(some),
        read(checks) {
          if (checks.some(({ partition }) => partition === "broken")) throw new Error("unreadable")
          return memory.read(checks)
        },
      },
    )
    for (const partition of ["a", "broken", "b"]) world.take(check(1, CLIENT, { partition }))
    // Another process takes units that this one does not know of yet.
    for (const partition of ["a", "b"]) memory.take([check(9, CLIENT, { partition })])
    await world.pass()
    for (const partition of ["a", "b"]) {
      expect(world.take(check(1, CLIENT, { partition })).granted).toBe(false)
    }
  })

  it("uses the limit of the latest request", async () => {
    const { take, pass } = open()
    expect(take(check(8)).granted).toBe(true)
    const cut = { ...CLIENT, limit: 5 }
    expect(take(check(1, cut)).granted).toBe(false)
    await pass()
    expect([take(check(1, cut)).granted, take(check(2)).granted]).toEqual([false, true])
  })
})

describe("rules that are not written back", () => {
  it.each([
    ["a log", { algorithm: "sliding-log" }],
    ["a leaky bucket", { algorithm: "leaky-bucket" }],
    ["counted refusals", { countRejected: true }],
    ["a rule that is not selected", { name: "other" }],
  ] as const)("are passed on: %s", (_, members) => {
    const policy = { ...CLIENT, counter: "passed", ...members }
    const { take, calls } = open({ rules: (name) => name === "client" })
    const answer = take(check(1, policy))
    expect([calls.takes, answer.checks[0]?.ageMs, answer.isRemembered]).toEqual([
      [[check(1, policy)]],
      undefined,
      undefined,
    ])
  })

  it("are passed on together with a penalty", () => {
    const penalty = { refusals: 3, withinMs: 60_000, forMs: [60_000] }
    const blocking: Policy = { ...CLIENT, counter: "p", algorithm: "penalty", limit: 3, penalty }
    const { take, calls } = open()
    const request = [check(), check(1, blocking)]
    take(...request)
    expect(calls.takes).toEqual([request])
  })
})

describe("a request under several rules", () => {
  it("takes the units of all written rules or of none", () => {
    const { take } = open()
    const small = { ...CLIENT, counter: "small", limit: 2 }
    expect([take(check(5), check(2, small)).granted, take(check(5), check(2, small)).granted]).toEqual([
      true,
      false,
    ])
    expect([take(check(0)), take(check(0, small))]).toMatchObject([
      { checks: [{ state: { current: 5 } }] },
      { checks: [{ state: { current: 2 } }] },
    ])
  })

  it("counts one rule twice if it is listed twice, and takes nothing for a shadow check that does not fit", () => {
    const { take } = open()
    expect(take(check(4), check(4)).checks.map((one) => one?.state.current)).toEqual([4, 8])
    expect(take(check(4), check(1)).granted).toBe(false)
    const shadow = take(check(4, CLIENT, { shadow: true }), check(1))
    expect([shadow.granted, shadow.checks.map((one) => one?.taken)]).toEqual([true, [0, 1]])
  })

  it("asks the shared store only for the rules that are passed on, and merges the answers", async () => {
    const { take, calls, clock } = open()
    clock.advance(3)
    expect(take(check(), check(1, LOG))).toMatchObject({
      nowMs: clock.now(),
      granted: true,
      checks: [
        { taken: 1, state: { current: 1 }, ageMs: 0 },
        { taken: 1, state: { current: 1 } },
      ],
    })
    expect(calls.takes).toEqual([[check(1, LOG)]])
  })

  it("does not ask the shared store if a written rule refuses", () => {
    const { take, takeEach, calls } = open()
    takeEach(10)
    expect(take(check(1, LOG), check())).toMatchObject({
      granted: false,
      checks: [undefined, { taken: 0, state: { current: 10 } }],
    })
    expect(calls.takes).toEqual([])
  })

  it("returns its units if the shared store refuses", async () => {
    const { take, counted, pass } = open()
    expect(take(check(2), check(1, LOG)).granted).toBe(true)
    expect(take(check(3), check(1, LOG))).toMatchObject({
      granted: false,
      checks: [{ taken: 0, state: { current: 2 } }, { taken: 0 }],
    })
    expect(take(check(0)).checks[0]?.state.current).toBe(2)
    await pass()
    expect(counted()).toBe(2)
  })

  it("returns its units if the shared store refuses after they were charged", async () => {
    let refuse = (): void => {}
    const memory = memoryStore({ clock: { now: () => world.clock.now() } })
    const take: Store["take"] = (checks) =>
      new Promise((resolve) => {
        refuse = () => {
          memory.take(checks)
          resolve(memory.take(checks))
        }
      })
    const world = open({}, { take })
    const asked = world.store.take([check(3), check(1, LOG)])
    await world.pass()
    expect(world.counted()).toBe(3)
    refuse()
    expect(await asked).toMatchObject({ granted: false, checks: [{ taken: 0 }, {}] })
    await world.pass()
    expect(world.counted()).toBe(0)
  })

  it.each([
    [
      "throws",
      () => {
        throw GONE
      },
    ],
    ["rejects", () => Promise.reject(GONE)],
  ])("returns its units if the shared store %s", async (_, fail) => {
    const { store, take } = open({}, { take: fail as Store["take"] })
    const asked = (async () => store.take([check(3), check(1, LOG)]))()
    await expect(asked).rejects.toBe(GONE)
    expect(take(check(0)).checks[0]?.state.current).toBe(0)
  })

  it("returns its units if the shared store is late", async () => {
    const { store, take } = open({}, { take: () => new Promise(() => {}) })
    await expect(store.take([check(3), check(1, LOG)], 5)).rejects.toMatchObject({ kind: "timeout" })
    expect(take(check(0)).checks[0]?.state.current).toBe(0)
  })

  it("returns its units if the shared store answers with nonsense", () => {
    const { store, take } = open({}, { take: () => ({ nowMs: 0, granted: true }) as never })
    expect(() => store.take([check(3), check(1, LOG)])).toThrow("invalid answer")
    expect(take(check(0)).checks[0]?.state.current).toBe(0)
  })

  it("answers each of several requests of a call", async () => {
    const { store } = open()
    const answers = await takeEach(store, [[check(6)], [check(6)], [check(1, LOG)], [check(1, LOG)]])
    expect(answers.map(({ granted }) => granted)).toEqual([true, false, true, false])
    expect(await store.take([])).toMatchObject({ granted: true, checks: [] })
  })
})

describe("instances", () => {
  it("use their shares of what is left, until they know more", async () => {
    const large = { ...CLIENT, counter: "large", limit: 100 }
    const { takeEach, take, other, pass } = open({ instances: 4 })
    expect(take(check(0, large)).checks[0]?.state.current).toBe(75)
    expect(takeEach(99, large)).toBe(25)
    await pass()
    // 75 are left. A share is rounded up.
    expect(takeEach(99, large)).toBe(19)
    other(17, large)
    await pass()
    // 100 - 25 - 19 - 17 are left.
    expect(takeEach(99, large)).toBe(10)
  })

  it("have the same room again after a refund", async () => {
    const large = { ...CLIENT, counter: "large", limit: 100 }
    const { take, store } = open({ instances: 4 })
    for (let i = 0; i < 60; i++) {
      const { granted, checks } = take(check(1, large))
      const after = checks[0]?.state as Counted["state"]
      await store.refund([{ ...check(1, large), units: 1, after }])
      expect([i, granted]).toEqual([i, true])
    }
    expect(take(check(0, large)).checks[0]?.state.current).toBe(75)
  })

  it("always have room for one request, whatever it costs", async () => {
    const { take, other, pass } = open({ instances: 8 })
    expect([take(check(5)).granted, take(check(1)).granted]).toEqual([true, false])
    await pass()
    expect(take(check(5)).granted).toBe(true)
    const one = { ...CLIENT, counter: "one" }
    other(9, one)
    take(check(0, one))
    await pass()
    expect([take(check(1, one)).granted, take(check(1, one)).granted]).toEqual([true, false])
  })

  it("use their shares of each window while the shared store is gone", async () => {
    const fixed: Policy = { ...CLIENT, counter: "fixed", algorithm: "fixed-window", limit: 100 }
    const world = open(
      { instances: 4 },
      { read: () => Promise.reject(GONE), refund: () => Promise.reject(GONE) },
    )
    for (let window = 0; window < 3; window++) {
      let granted = 0
      for (let i = 0; i < 60; i++) {
        granted += world.takeEach(3, fixed)
        await world.pass(1_000)
      }
      expect(granted).toBe(25)
    }
  })
})

describe("refunds", () => {
  const afterOf = (answer: StoreResult) => (answer.checks[0] as Counted).state
  const refundOf = (units: number, answer: StoreResult): Refund => ({
    ...{ policy: CLIENT, partition: "ann" },
    ...{ units, after: afterOf(answer) },
  })

  it("before the settling are not charged at all", async () => {
    const { store, take, takeEach, calls, counted, pass } = open()
    const answer = take(check(6))
    expect(store.refund([refundOf(2, answer)])).toBeUndefined()
    expect([takeEach(9), calls.refunds]).toEqual([6, []])
    await pass()
    expect([counted(), calls.refunds.map(({ units }) => units)]).toEqual([10, [-10]])
  })

  it("after the settling are refunded with the next one", async () => {
    const { store, take, calls, counted, pass } = open()
    const answer = take(check(6))
    await pass()
    void store.refund([refundOf(2, answer)])
    expect([counted(), take(check(0)).checks[0]?.state.current]).toEqual([6, 4])
    await pass()
    expect([counted(), calls.refunds.map(({ units }) => units)]).toEqual([4, [-6, 2]])
  })

  it("of a bucket return the level that is still in use", async () => {
    const { store, take, counted, pass } = open()
    const answer = take(check(6, BUCKET))
    await pass()
    void store.refund([{ ...refundOf(2, answer), policy: BUCKET }])
    await pass()
    expect(counted(BUCKET)).toBe(4)
  })

  it("that are charges count at once", async () => {
    const { store, take, takeEach, counted, pass } = open()
    void store.refund([refundOf(-7, take(check(1)))])
    expect(takeEach(9)).toBe(2)
    await pass()
    expect(counted()).toBe(10)
  })

  it("stop at the largest exact number of units in use", async () => {
    const { store, take } = open()
    void store.refund([refundOf(-Number.MAX_SAFE_INTEGER, take(check(4)))])
    expect(take(check(0)).checks[0]?.state.current).toBe(Number.MAX_SAFE_INTEGER)
  })

  it("of other counters go to the shared store", async () => {
    const { store, take, calls, other } = open()
    other(3, LOG)
    const refund = { ...refundOf(1, take(check(1))), partition: "bob" }
    await store.refund([refund])
    expect(calls.refunds).toEqual([refund])
  })
})

describe("a settling that fails", () => {
  it("with nothing applied is tried again, while the units still count", async () => {
    const { takeEach, counted, fault, lost, store, pass } = failing(["refund"])
    takeEach(4)
    fault.error = GONE
    await pass()
    expect([counted(), takeEach(9), store.status?.writeBack?.failingMs]).toEqual([0, 6, 0])
    await pass()
    expect(store.status?.writeBack).toEqual({ lost: 0, failingMs: SETTLE_MS })
    fault.error = undefined
    await pass()
    expect([counted(), lost, store.status?.writeBack]).toEqual([10, [], { lost: 0, failingMs: 0 }])
    await pass()
    expect([counted(), takeEach(9)]).toEqual([10, 0])
  })

  it("with nothing applied charges a bucket for no more than it still has in use", async () => {
    const { takeEach, counted, fault, pass } = failing(["refund", "read"])
    fault.error = GONE
    let granted = 0
    // Ten come back in a minute, so 60 of 70 have come back.
    for (let second = 0; second < 360; second++) {
      granted += takeEach(1, BUCKET)
      await pass(1_000)
    }
    expect(granted).toBeGreaterThanOrEqual(68)
    fault.error = undefined
    await pass(1_000)
    await pass(12_000)
    expect([counted(BUCKET) > 0, takeEach(1, BUCKET)]).toEqual([true, 1])
  })

  it("of one counter does not concern the others", async () => {
    const world = open(
      {},
      {
        refund: (refunds) =>
          refunds[0]?.partition === "bad" ? Promise.reject(UNKNOWN) : memory.refund(refunds),
        read: (checks) => (checks[0]?.partition === "bad" ? Promise.reject(UNKNOWN) : memory.read(checks)),
      },
    )
    const memory = memoryStore({ clock: world.clock })
    const events: StoreEvent[] = []
    world.store.subscribe?.((event) => events.push(event))
    for (let i = 0; i < 4; i++) {
      world.take(check(1, CLIENT, { partition: "bad" }))
      world.take(check(1))
      await world.pass()
    }
    await world.pass(50)
    const { isDegraded, checks } = world.take(check(1))
    expect([isDegraded, checks[0]?.ageMs, events.length]).toEqual([undefined, 50, 4])
    expect(world.store.status?.writeBack?.lost).toBe(4)
  })

  it("whose charge was lost sends no refund of its units, which would take off units of others", async () => {
    const { take, counted, other, fault, store, pass } = failing(["refund"])
    other(5)
    const after = take(check(4)).checks[0]?.state as Counted["state"]
    fault.error = UNKNOWN
    await pass()
    fault.error = undefined
    await store.refund([{ ...check(), units: 4, after }])
    await pass()
    expect(counted()).toBe(5)
  })

  it("of an evicted counter comes before a refund of its units", async () => {
    const { take, counted, store, pass } = open({ maxKeys: 1 })
    const after = take(check(4)).checks[0]?.state as Counted["state"]
    take(check(1, CLIENT, { partition: "bob" }))
    await store.refund([{ ...check(), units: 3, after }])
    await pass()
    expect(counted()).toBe(1)
  })

  it("with nothing applied loses units whose window has passed", async () => {
    const { takeEach, counted, fault, lost, store, pass } = failing(["refund"])
    takeEach(4)
    fault.error = GONE
    await pass()
    await pass(119_899)
    expect(store.status?.writeBack?.lost).toBe(0)
    await pass(SETTLE_MS)
    expect([store.status?.writeBack?.lost, lost.map(({ units }) => units)]).toEqual([4, [4]])
    fault.error = undefined
    await pass()
    expect(counted()).toBe(0)
  })

  it("with an unknown outcome loses the units, and does not charge them twice", async () => {
    const { takeEach, take, counted, fault, lost, store, pass } = failing(["refund", "read"])
    takeEach(4)
    fault.error = UNKNOWN
    await pass()
    fault.error = undefined
    // The shared count is not known yet, so the units still count in this process.
    expect(take(check(0)).checks[0]?.state.current).toBe(4)
    expect(store.status?.writeBack).toEqual({ lost: 4, failingMs: 0 })
    expect(lost[0]?.error.message).toBe("The shared store did not confirm 4 units: late.")
    await pass()
    expect(counted()).toBe(0)
    expect(take(check(0)).checks[0]?.state.current).toBe(0)
  })

  it("to ask for the shared count keeps the known one", async () => {
    const { takeEach, counted, fault, pass } = failing(["read"])
    takeEach(4)
    fault.error = UNKNOWN
    await pass()
    expect([counted(), takeEach(9)]).toEqual([4, 6])
  })

  it("ends after a second if the shared store does not answer at all", async () => {
    const world = open(
      { settleMs: 1 },
      { refund: () => new Promise(() => {}), read: () => new Promise(() => {}) },
    )
    const events: StoreEvent[] = []
    world.store.subscribe?.((event) => events.push(event))
    world.takeEach(1)
    await world.pass(1)
    await new Promise((resolve) => setTimeout(resolve, 1_100))
    expect(events).toMatchObject([{ type: "charges-lost", units: 1 }])
  })

  it("three times makes answers say so, until one succeeds", async () => {
    const { take, fault, pass } = failing(["refund", "read"])
    const condition = () => {
      const { isRemembered = false, isDegraded = false } = take(check(0))
      return [isRemembered, isDegraded]
    }
    const ledger = [condition()]
    fault.error = GONE
    for (let i = 0; i < 4; i++) {
      await pass()
      ledger.push(condition())
    }
    fault.error = undefined
    await pass()
    ledger.push(condition())
    expect(ledger).toEqual([
      [false, false],
      [true, false],
      [true, false],
      [true, true],
      [true, true],
      [false, false],
    ])
  })

  it("with an error is reported with the error", async () => {
    const { take, fault, pass } = failing(["refund"])
    fault.error = new StoreUnavailableError("Redis failed: NOPERM", { outcome: "not-applied" })
    take(check(1))
    for (let i = 0; i < 3; i++) {
      await pass()
      take(check(1))
    }
    const { isDegraded, failure } = take(check(1))
    expect([isDegraded, failure?.kind]).toEqual([true, "unavailable"])
    expect(failure?.message).toBe("The store decided without the shared counters: Redis failed: NOPERM")
    expect(failure?.cause).toBe(fault.error)
  })

  it("without any reply makes answers say so after 1.2 seconds, until a reply comes, not counting pauses", async () => {
    let isSilent = true
    const memory = memoryStore({ clock: { now: () => world.clock.now() } })
    let reply: () => void = () => undefined
    const world = open(
      {},
      {
        refund: (refunds) =>
          isSilent ? new Promise<void>((resolve) => (reply = resolve)) : memory.refund(refunds),
        read: (checks) => memory.read(checks),
      },
    )
    const isDegraded = () => world.take(check(0)).isDegraded === true
    world.takeEach(1)
    await world.pass()
    await world.pass(1_199)
    expect(isDegraded()).toBe(false)
    await world.pass(1)
    expect(isDegraded()).toBe(true)
    isSilent = false
    reply()
    await settle()
    expect(isDegraded()).toBe(false)
    await world.pass(60_000)
    expect(isDegraded()).toBe(false)
  })

  it("at the same time as others counts once", async () => {
    const { take, fault, pass } = failing(["refund", "read"])
    fault.error = GONE
    for (let i = 0; i < 300; i++) take(check(1, CLIENT, { partition: `${i}` }))
    await pass()
    expect(take(check(0)).isDegraded).toBeUndefined()
  })

  it("lets few others try, so that an outage costs little, and settles all of them afterwards", async () => {
    let isGone = true
    let charged = 0
    const memory = memoryStore({ clock: { now: () => world.clock.now() } })
    const world = open(
      {},
      {
        refund(some) {
          charged += some.length
          return isGone ? Promise.reject(GONE) : memory.refund(some)
        },
        read: (checks) => (isGone ? Promise.reject(GONE) : memory.read(checks)),
      },
    )
    for (let i = 0; i < 300; i++) world.take(check(1, CLIENT, { partition: `${i}` }))
    await world.pass()
    expect(charged).toBe(300)
    await world.pass()
    expect(charged).toBe(364)
    isGone = false
    for (let i = 0; i < 5; i++) await world.pass(SETTLE_MS)
    expect([charged, memory.size]).toEqual([664, 300])
  })
})

describe("a shared store that does not answer", () => {
  /** Opens a store whose shared store is silent. Returns the partitions that were charged, and a function that ends the silence. */
  function silent(options: WriteBackStoreOptions = {}) {
    const charged: string[] = []
    const peeked: string[] = []
    const ends: (() => void)[] = []
    const events: ChargesLostEvent[] = []
    const world = open(options, {
      refund: ([charge]) => {
        charged.push(charge?.partition as string)
        return new Promise((_, reject) => ends.push(() => reject(UNKNOWN)))
      },
      read: (checks) => {
        peeked.push(...checks.map(({ partition }) => partition))
        return Promise.reject(UNKNOWN)
      },
    })
    world.store.subscribe?.((event) => {
      if (event.type === "charges-lost") events.push(event)
    })
    const takeOfEach = (clients: number) => {
      for (let i = 0; i < clients; i++) world.take(check(1, CLIENT, { partition: `${i}` }))
    }
    const end = async () => {
      for (const each of ends.splice(0)) each()
      await settle()
    }
    const lost = () => events.reduce((sum, { units }) => sum + units, 0)
    return { ...world, charged, peeked, events, takeOfEach, end, lost }
  }

  it("gets charges of at most 4,096 counters at a time", async () => {
    const { takeOfEach, charged, pass } = silent()
    takeOfEach(6_000)
    await pass()
    for (let sweep = 0; sweep < 9; sweep++) await pass(SETTLE_MS / 10)
    expect(charged).toHaveLength(4_096)
  })

  it("is not asked for counts after a charge without a reply, and then gets one charge at a time", async () => {
    const { takeOfEach, charged, peeked, pass, end } = silent()
    takeOfEach(300)
    await pass()
    takeOfEach(300)
    await end()
    await pass()
    await pass()
    expect([charged.length, peeked]).toEqual([301, []])
    await end()
    await pass()
    expect([charged.length, peeked]).toEqual([302, []])
  })

  it("is asked for the count of each counter alone only if it answers meanwhile", async () => {
    const { take, peeked, pass } = silent()
    for (let i = 0; i < 300; i++) take(check(0, CLIENT, { partition: `${i}` }))
    await pass()
    expect(peeked).toHaveLength(300)
  })

  it("does not fill the memory: above maxKeys, charges of evicted counters are reported as lost", async () => {
    const { takeOfEach, charged, pass, events, lost, end, store } = silent({ maxKeys: 1_500 })
    takeOfEach(10_000)
    expect(events).toEqual([])
    await pass()
    // 1,500 counters in the table and as many evicted ones may wait.
    expect(lost()).toBeGreaterThanOrEqual(10_000 - 2 * 1_500)
    expect(events).toHaveLength(1)
    expect(events[0]?.error.message).toMatch(/More counters wait to be charged than maxKeys allows\.$/)
    for (let sweep = 0; sweep < 9; sweep++) await pass(SETTLE_MS / 10)
    expect(charged.length + lost()).toBe(10_000)
    await end()
    await store.close()
    expect(lost()).toBe(10_000)
  })
})

describe("a full table", () => {
  it("forgets the counter that was used least recently, and still charges its units", async () => {
    const { take, clock, counted, calls, pass } = open({ maxKeys: 3 })
    for (const partition of ["ann", "bob", "eve", "joe"]) {
      take(check(2, CLIENT, { partition }))
      clock.advance(1)
    }
    // Ann's counter was evicted. It starts again with the units that are not charged yet.
    expect(take(check(0)).checks[0]?.state.current).toBe(2)
    await pass()
    expect(["ann", "bob", "eve", "joe"].map((partition) => counted(CLIENT, partition))).toEqual([2, 2, 2, 2])
    expect(calls.refunds).toHaveLength(4)
    // Only counts of counters in the table are asked for.
    expect(
      calls.reads
        .flat()
        .slice(0, 3)
        .map(({ partition }) => partition),
    ).toEqual(["eve", "joe", "ann"])
  })

  it("is avoided by forgetting counters that have no effect anymore", async () => {
    const { take, calls, pass } = open()
    take(check(2))
    await pass()
    await pass(120_000)
    for (const partition of ["bob", "eve", "joe"]) take(check(1, CLIENT, { partition }))
    take(check(0))
    // A counter that is still known would report the age of its count.
    expect(take(check(0)).checks[0]?.ageMs).toBe(0)
    expect(calls.reads).toHaveLength(1)
  })

  it("keeps counters that still have an effect", async () => {
    const { take, pass } = open()
    take(check(2))
    await pass()
    await pass(119_800)
    for (const partition of ["bob", "eve", "joe"]) take(check(1, CLIENT, { partition }))
    expect(take(check(0)).checks[0]?.ageMs).toBe(119_800)
  })
})

describe("peek", () => {
  it("answers from this process while units are on their way", async () => {
    const world = open({}, { refund: () => new Promise(() => {}) })
    world.take(check(4))
    await world.pass()
    expect(peekStore(world.store, [check(1)])).toMatchObject({ checks: [{ state: { current: 4 } }] })
  })

  it("answers from this process while something is not settled, and asks the shared store otherwise", async () => {
    const { store, take, calls, other, pass } = open()
    take(check(4))
    expect(peekStore(store, [check(7)])).toMatchObject({
      granted: false,
      checks: [{ state: { current: 4 }, taken: 0 }],
    })
    expect(calls.reads).toEqual([])
    await pass()
    other(2)
    expect(peekStore(store, [check(4)])).toMatchObject({ granted: true, checks: [{ state: { current: 6 } }] })
    expect(calls.reads).toHaveLength(2)
  })

  it("asks the shared store for the other checks of the request", async () => {
    const { store, take, calls } = open()
    take(check(4), check(1, LOG))
    const requests = [[check(1), check(1, LOG)], [check(6)], [check(0, LOG)]]
    expect(requests.map((checks) => peekStore(store, checks))).toMatchObject([
      { granted: false, checks: [{ state: { current: 4 } }, { state: { current: 1 } }] },
      { granted: true, checks: [{ state: { current: 4 } }] },
      { granted: true, checks: [{ state: { current: 1 } }] },
    ])
    expect(calls.reads).toEqual([[check(1, LOG)], [check(0, LOG)]])
    expect(peekStore(store, [check(7), check(0, LOG)])).toMatchObject({ granted: false })
  })

  it("answers from this process while the shared store fails", async () => {
    const { store, take, fault, pass } = failing(["refund", "read"])
    take(check(4))
    fault.error = UNKNOWN
    await pass()
    expect(await peekStore(store, [check(1)])).toMatchObject({ checks: [{ state: { current: 4 } }] })
  })
})

describe("reset", () => {
  const KEYS = [{ policy: CLIENT, partition: "ann" }]

  it("drops what is known and what is pending", async () => {
    const { store, takeEach, counted, calls, pass } = open()
    takeEach(4)
    await pass()
    takeEach(5)
    await store.reset(KEYS)
    await pass()
    expect([counted(), calls.refunds.length, takeEach(99)]).toEqual([0, 1, 10])
  })

  it("drops what was taken while the shared store deleted the counter", async () => {
    let reset = (): void => {}
    const world = open({}, { reset: () => new Promise((resolve) => (reset = resolve)) })
    const done = world.store.reset(KEYS)
    world.takeEach(4)
    reset()
    await done
    expect(world.takeEach(99)).toBe(10)
  })

  it("waits for charges that are on their way", async () => {
    const order: string[] = []
    let answer = (): void => {}
    const world = open(
      {},
      {
        refund() {
          order.push("charge")
          return new Promise((resolve) => (answer = resolve))
        },
        reset: () => void order.push("reset"),
      },
    )
    world.takeEach(4)
    await world.pass()
    const done = world.store.reset(KEYS)
    await settle()
    expect(order).toEqual(["charge"])
    answer()
    await done
    expect(order).toEqual(["charge", "reset"])
    expect(world.takeEach(99)).toBe(10)
  })

  it("forgets a charge and a request that were answered after it", async () => {
    const late: (() => void)[] = []
    const take: Store["take"] = () => new Promise((_, reject) => late.push(() => reject(GONE)))
    const refund: Store["refund"] = (some) => {
      sent.push(...some.map(({ units }) => units))
      return new Promise((_, reject) => late.push(() => reject(GONE)))
    }
    const sent: number[] = []
    const world = open({}, { take, refund })
    world.takeEach(4)
    await world.pass()
    const asked = world.store.take([check(3), check(1, LOG)])
    await world.store.reset(KEYS, 10)
    for (const fail of late) fail()
    await expect(asked).rejects.toBe(GONE)
    await settle()
    for (let i = 0; i < 3; i++) await world.pass()
    // They would take off or add units of other processes.
    expect(sent).toEqual([-4])
    expect(world.takeEach(99)).toBe(10)
  })

  it("that fails charges the pending units nevertheless", async () => {
    const { store, takeEach, counted, fault, pass } = failing(["reset"])
    takeEach(4)
    fault.error = GONE
    await expect(store.reset(KEYS)).rejects.toBe(GONE)
    expect(takeEach(99)).toBe(6)
    await pass()
    expect(counted()).toBe(10)
  })
})

describe("closing", () => {
  it("charges what is pending after the calls in flight, and then closes the shared store", async () => {
    const order: string[] = []
    const answers: (() => void)[] = []
    const world = open(
      {},
      {
        refund(some) {
          order.push(`charge ${some.map(({ units }) => units)}`)
          return new Promise((resolve) => answers.push(resolve))
        },
        close: () => void order.push("close"),
      },
    )
    world.takeEach(4)
    await world.pass()
    world.takeEach(3)
    const closed = world.store.close()
    await settle()
    expect(order).toEqual(["charge -4"])
    answers.shift()?.()
    await settle()
    expect(order).toEqual(["charge -4", "charge -3"])
    answers.shift()?.()
    await closed
    expect(order).toEqual(["charge -4", "charge -3", "close"])
    expect(() => world.take(check())).toThrow(ClosedError)
  })

  it("waits for requests in flight, whose units may return", async () => {
    let fail = (): void => {}
    const world = open(
      {},
      {
        take: () =>
          new Promise((_, reject) => {
            fail = () => reject(GONE)
          }),
      },
    )
    const asked = world.store.take([check(3), check(1, LOG)])
    const closed = world.store.close()
    await settle()
    fail()
    await expect(asked).rejects.toBe(GONE)
    await closed
    expect(world.calls.refunds).toEqual([])
  })

  it("loses units that the shared store does not accept anymore, and an event reports it", async () => {
    const { store, takeEach, fault, lost, pass } = failing(["refund"])
    takeEach(4)
    fault.error = GONE
    await pass()
    await store.close()
    expect(lost.map(({ units }) => units)).toEqual([4])
  })
})

describe("a store that writes back", () => {
  const shared = () => Object.assign(memoryStore(), { isShared: true })

  it("may be in front of a leased store, whose rules it leaves alone", () => {
    const leased = leasedStore(shared())
    const store = writeBackStore(leased, { rules: (name) => name === "client" })
    void store.take([check(1, { ...CLIENT, name: "all", counter: "all", limit: 100_000 }), check(1)])
    expect(store.status?.leases).toMatchObject({ held: 0 })
  })

  it.each([
    ["not shared", () => writeBackStore(memoryStore()), "store: is not shared"],
    ["written back", () => writeBackStore(writeBackStore(shared())), "store: is written back already"],
    ["leased", () => leasedStore(writeBackStore(shared())), "store: is written back; accepted"],
    ["not a store", () => writeBackStore({} as Store), "store: {} is not a store"],
    ["a time", () => writeBackStore(shared(), { settleMs: 0.5 }), "settleMs: 0.5 is not a valid time"],
    ["instances", () => writeBackStore(shared(), { instances: 0 }), "instances: 0 is not a valid number"],
    ["maxKeys", () => writeBackStore(shared(), { maxKeys: -1 }), "maxKeys: -1 is not a valid number"],
    ["rules", () => writeBackStore(shared(), { rules: ["a"] as never }), 'rules: ["a"] is not a function'],
    ["a clock", () => writeBackStore(shared(), { clock: {} as never }), "clock: {} is not a clock"],
    ["a name", () => writeBackStore(shared(), { setleMs: 5 } as never), 'did you mean "settleMs"?'],
    [
      "a name of every object",
      () => writeBackStore(shared(), { toString: 5 } as never),
      "toString: is not an option of writeBackStore",
    ],
    ["no options", () => writeBackStore(shared(), null as never), "null is not an options object"],
  ])("rejects invalid options: %s", (_, create, message) => {
    expect(create).toThrow(message)
  })
})
