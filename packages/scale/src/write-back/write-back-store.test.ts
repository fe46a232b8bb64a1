import { memoryStore, type Store, StoreUnavailableError } from "@sluice/core"
import {
  type ChargesLostEvent,
  type Check,
  type Counted,
  type CounterKey,
  type Policy,
  peekStore,
  type Refund,
  type StoreResult,
} from "@sluice/core/stores"
import { describe, expect, it } from "vitest"
import { methodsOf } from "../../../core/src/stores/testing/methods-of.ts"
import { type Fault, type Network, rejecting, settle, sharedMemory } from "../testing/shared-memory.ts"
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
/** A rule that the shared store decides, and that admits a single request. */
const LOG: Policy = { ...CLIENT, name: "log", counter: "log", algorithm: "sliding-log", limit: 1 }

function check(cost = 1, policy = CLIENT, more: Partial<Check> = {}): Check {
  return { policy, partition: "ann", cost, shadow: false, ...more }
}

/** Creates a write-back store. `over` replaces methods of the shared store. */
function open(options: WriteBackStoreOptions = {}, network: Network = {}, over: Partial<Store> = {}) {
  const memory = sharedMemory(over, network)
  const { shared, clock } = memory
  const store = writeBackStore(shared, { clock, ...options })
  const take = (...checks: Check[]) => store.take(checks) as StoreResult
  const lost: ChargesLostEvent[] = []
  store.subscribe?.((event) => {
    if (event.type === "charges-lost") lost.push(event)
  })
  return {
    ...memory,
    store,
    take,
    lost,
    /** Takes units one by one. Returns the number of granted units. */
    takeEach: (units: number, policy = CLIENT) =>
      Array.from({ length: units }, () => take(check(1, policy)).granted).filter(Boolean).length,
    /** Takes a unit for each of this number of clients. */
    takeOfEach(clients: number) {
      for (let i = 0; i < clients; i++) take(check(1, CLIENT, { partition: `${i}` }))
    },
    /** Another process takes units. */
    other: (cost: number, policy = CLIENT) => void memory.others.take([check(cost, policy)]),
    counted: (policy = CLIENT, partition = "ann") => memory.counted(policy, partition),
    /** Lets all, some or no calls fail. */
    fail(fault?: Error | Fault) {
      memory.fault = fault instanceof Error ? rejecting(fault) : fault
    },
    async pass(ms = SETTLE_MS) {
      clock.advance(ms)
      await settle()
    },
  }
}

const GONE = new StoreUnavailableError("gone", { outcome: "not-applied" })
const UNKNOWN = new StoreUnavailableError("late", { kind: "timeout" })

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
    // No units are charged twice.
    await pass(10 * SETTLE_MS)
    expect([counted(), calls.reads.length]).toEqual([4, 1])
  })

  it("includes the units of other processes after a settlement", async () => {
    const { takeEach, other, pass, take } = open()
    other(7)
    expect(takeEach(5)).toBe(5)
    await pass()
    // 12 units were granted. These units count until their window passes.
    expect(take(check())).toMatchObject({ granted: false, checks: [{ state: { current: 12 } }] })
  })

  it("is settled again if it becomes due during its settlement", async () => {
    const { takeEach, pass, calls, answer } = open({}, { slow: ["refund"] })
    takeEach(4)
    await pass()
    takeEach(3)
    await pass()
    // A counter is never settled twice at a time, because an older reply could then replace a newer one.
    expect(calls.order).toEqual(["refund -4"])
    await answer()
    expect(calls.order).toEqual(["refund -4", "refund -3"])
    await answer()
    expect(takeEach(9)).toBe(3)
  })

  it("refuses requests until its units have fallen below the limit", async () => {
    const debt: Policy = { ...BUCKET, counter: "debt" }
    const { takeEach, other, pass, take, counted } = open()
    other(9, debt)
    expect(takeEach(9, debt)).toBe(9)
    await pass()
    // 18 of 10 units are in use, and one unit is refilled every 6 s.
    expect([take(check(1, debt)).granted, counted(debt)]).toEqual([false, 18])
    await pass(9 * 6_000 - SETTLE_MS - 1)
    expect(takeEach(9, debt)).toBe(0)
    await pass(1)
    expect(takeEach(9, debt)).toBe(1)
  })

  it("of a bucket adds units that it granted during a settlement in full", async () => {
    const fast: Policy = { ...BUCKET, counter: "fast", limit: 100, burst: 10, windowMs: 1_000 }
    const { take, takeEach, other, pass, clock, answer } = open({}, { late: ["read"] })
    takeEach(1, fast)
    await pass()
    // Another process has filled the bucket. This process grants 6 units before it reads this count. All these units
    // are refilled.
    other(9, fast)
    takeEach(6, fast)
    clock.advance(70)
    await answer()
    // One unit was charged and 6 are pending. In the shared store, none of these 6 units has been refilled.
    expect(take(check(0, fast)).checks[0]?.state.current).toBe(6)
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
      const memory = memoryStore({ clock: { now: () => world.clock.now() + aheadMs } })
      const { refund, read } = methodsOf(memory)
      const world = open({}, {}, { refund, read })
      const startedMs = world.clock.now()
      expect(world.take(check()).nowMs).toBe(startedMs)
      await world.pass()
      expect(world.take(check()).nowMs).toBe(startedMs + SETTLE_MS + aheadMs)
      // New counters start with the same estimate of the server's time.
      world.clock.advance(0.5)
      expect(world.take(check(1, CLIENT, { partition: "bob" })).nowMs).toBe(startedMs + SETTLE_MS + aheadMs)
    },
  )

  it("does not go back in time after a slow reply", async () => {
    const { clock, takeEach, pass, answer } = open({}, { late: ["read"] })
    const fixed: Policy = { ...CLIENT, counter: "fixed", algorithm: "fixed-window" }
    clock.advance(59_895)
    takeEach(4, fixed)
    await pass()
    // The reply is from the previous window. These units were taken in the next window.
    clock.advance(8)
    expect(takeEach(6, fixed)).toBe(6)
    await answer()
    expect(takeEach(9, fixed)).toBe(4)
  })

  it("is read from the shared store only if a request has used it", async () => {
    const { takeEach, calls, pass } = open()
    takeEach(11)
    for (let i = 0; i < 5; i++) await pass()
    expect(calls.reads).toHaveLength(1)
    takeEach(1)
    for (let i = 0; i < 5; i++) await pass()
    expect(calls.reads).toHaveLength(2)
  })

  it("is charged in a separate call, and read together with up to 63 others", async () => {
    const { takeOfEach, calls, pass } = open()
    takeOfEach(100)
    await pass()
    expect(calls.order).toHaveLength(100)
    expect(calls.reads.map(({ length }) => length)).toEqual([64, 36])
  })

  it("is read although another counter in the same call fails", async () => {
    const { take, other, fail, pass } = open({}, { failing: ["read"] })
    const isBroken = ({ partition }: CounterKey) => partition === "broken"
    for (const partition of ["ann", "broken"]) take(check(1, CLIENT, { partition }))
    // Another process takes units that this process does not know yet.
    other(9)
    fail((keys) => (keys.some(isBroken) ? Promise.reject(UNKNOWN) : undefined))
    await pass()
    expect(take(check(1)).granted).toBe(false)
  })

  it("uses the limit of its latest request", async () => {
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
  ] as const)("are decided by the shared store: %s", (_, members) => {
    const policy = { ...CLIENT, counter: "passed", ...members }
    const { take, calls } = open({ rules: (name) => name === "client" })
    const answer = take(check(1, policy))
    expect([calls.takes, answer.checks[0]?.ageMs, answer.isRemembered]).toEqual([
      [[check(1, policy)]],
      undefined,
      undefined,
    ])
  })
})

describe("a request under several rules", () => {
  it("does not ask the shared store if a written rule refuses", () => {
    const { take, takeEach, calls } = open()
    takeEach(10)
    expect(take(check(1, LOG), check())).toMatchObject({
      granted: false,
      checks: [undefined, { taken: 0, state: { current: 10 } }],
    })
    expect(calls.takes).toEqual([])
  })

  it("returns its units if the shared store refuses after the units were charged", async () => {
    const { store, counted, other, pass, answer } = open({}, { slow: ["take"] })
    const asked = store.take([check(3), check(1, LOG)])
    await pass()
    expect(counted()).toBe(3)
    other(1, LOG)
    await answer()
    expect(await asked).toMatchObject({ granted: false, checks: [{ taken: 0 }, {}] })
    await pass()
    expect(counted()).toBe(0)
  })
})

describe("instances", () => {
  it("use their shares of the remaining units until the next settlement", async () => {
    const large = { ...CLIENT, counter: "large", limit: 100 }
    const { takeEach, take, other, pass } = open({ instances: 4 })
    expect(take(check(0, large)).checks[0]?.state.current).toBe(75)
    expect(takeEach(99, large)).toBe(25)
    await pass()
    // 75 are left. A share is rounded up.
    expect(takeEach(99, large)).toBe(19)
    other(17, large)
    await pass()
    // 100 - 25 - 19 - 17 units remain.
    expect(takeEach(99, large)).toBe(10)
  })

  it("have the same number of remaining units again after a refund", async () => {
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

  it("subtract only once the units that others were assumed to take", async () => {
    const large = { ...CLIENT, counter: "large", limit: 100 }
    const { take, store, pass } = open({ instances: 4 })
    const old = take(check(8, large))
    await pass()
    const fresh = take(check(1, large))
    for (const [units, { checks }] of [
      [1, fresh],
      [2, old],
    ] as const) {
      await store.refund([{ ...check(units, large), units, after: checks[0]?.state as Counted["state"] }])
    }
    // 6 units are in use, so 94 units remain, and a share is 23.
    expect(take(check(0, large)).checks[0]?.state.current).toBe(77)
  })

  it("always admit one request, whatever it costs", async () => {
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
})

describe("refunds", () => {
  const afterOf = (answer: StoreResult) => (answer.checks[0] as Counted).state
  const refundOf = (units: number, answer: StoreResult): Refund => ({
    ...{ policy: CLIENT, partition: "ann" },
    ...{ units, after: afterOf(answer) },
  })

  it("before the settlement are not charged at all", async () => {
    const { store, take, takeEach, calls, counted, pass } = open()
    const answer = take(check(6))
    expect(store.refund([refundOf(2, answer)])).toBeUndefined()
    expect([takeEach(9), calls.refunds]).toEqual([6, []])
    await pass()
    expect([counted(), calls.refunds.map(({ units }) => units)]).toEqual([10, [-10]])
  })

  it("after the settlement are refunded with the next settlement", async () => {
    const { store, take, calls, counted, pass } = open()
    const answer = take(check(6))
    await pass()
    void store.refund([refundOf(2, answer)])
    expect([counted(), take(check(0)).checks[0]?.state.current]).toEqual([6, 4])
    await pass()
    expect([counted(), calls.refunds.map(({ units }) => units)]).toEqual([4, [-6, 2]])
  })

  it("of a bucket return only the level that is still in use", async () => {
    const { store, take, counted, pass } = open()
    const answer = take(check(6, BUCKET))
    await pass()
    void store.refund([{ ...refundOf(2, answer), policy: BUCKET }])
    await pass()
    expect(counted(BUCKET)).toBe(4)
  })

  it("that are charges count immediately", async () => {
    const { store, take, takeEach, counted, pass } = open()
    void store.refund([refundOf(-7, take(check(1)))])
    expect(takeEach(9)).toBe(2)
    await pass()
    expect(counted()).toBe(10)
  })

  it("of other counters go to the shared store", async () => {
    const { store, take, calls, other } = open()
    other(3, LOG)
    const refund = { ...refundOf(1, take(check(1))), partition: "bob" }
    await store.refund([refund])
    expect(calls.refunds).toEqual([refund])
  })
})

describe("a settlement that fails", () => {
  it("with nothing applied is retried while the units still count", async () => {
    const { takeEach, counted, fail, lost, store, pass } = open({}, { failing: ["refund"] })
    takeEach(4)
    fail(GONE)
    await pass()
    expect([counted(), takeEach(9), store.status?.writeBack?.failingMs]).toEqual([0, 6, 0])
    await pass()
    expect(store.status?.writeBack).toEqual({ lost: 0, failingMs: SETTLE_MS })
    fail()
    await pass()
    expect([counted(), lost, store.status?.writeBack]).toEqual([10, [], { lost: 0, failingMs: 0 }])
    await pass()
    expect([counted(), takeEach(9)]).toEqual([10, 0])
  })

  it("that changed nothing charges a bucket only for units that are still in use", async () => {
    const { takeEach, counted, fail, pass } = open()
    fail(GONE)
    let granted = 0
    // Ten units are refilled per minute, so 60 of 70 units have been refilled.
    for (let second = 0; second < 360; second++) {
      granted += takeEach(1, BUCKET)
      await pass(1_000)
    }
    expect(granted).toBeGreaterThanOrEqual(68)
    fail()
    await pass(1_000)
    await pass(12_000)
    expect([counted(BUCKET) > 0, takeEach(1, BUCKET)]).toEqual([true, 1])
  })

  it("of one counter does not affect other counters", async () => {
    const { store, take, fail, pass, lost } = open()
    fail(([key]) => (key?.partition === "bad" ? Promise.reject(UNKNOWN) : undefined))
    for (let i = 0; i < 4; i++) {
      take(check(1, CLIENT, { partition: "bad" }))
      take(check(1))
      await pass()
    }
    await pass(50)
    const { isDegraded, checks } = take(check(1))
    expect([isDegraded, checks[0]?.ageMs, lost.length]).toEqual([undefined, 50, 4])
    expect(store.status?.writeBack?.lost).toBe(4)
  })

  it("whose charge was lost sends no refund of its units, because it would subtract units of others", async () => {
    const { take, counted, other, fail, store, pass } = open({}, { failing: ["refund"] })
    other(5)
    const after = take(check(4)).checks[0]?.state as Counted["state"]
    fail(UNKNOWN)
    await pass()
    fail()
    await store.refund([{ ...check(), units: 4, after }])
    await pass()
    expect(counted()).toBe(5)
  })

  it("of an evicted counter still comes before a refund of its units", async () => {
    const { take, counted, store, pass } = open({ maxKeys: 1 })
    const after = take(check(4)).checks[0]?.state as Counted["state"]
    take(check(1, CLIENT, { partition: "bob" }))
    await store.refund([{ ...check(), units: 3, after }])
    await pass()
    expect(counted()).toBe(1)
  })

  it("with nothing applied loses units whose window has passed", async () => {
    const { takeEach, counted, fail, lost, store, pass } = open({}, { failing: ["refund"] })
    takeEach(4)
    fail(GONE)
    await pass()
    await pass(119_899)
    expect(store.status?.writeBack?.lost).toBe(0)
    await pass(SETTLE_MS)
    expect([store.status?.writeBack?.lost, lost.map(({ units }) => units)]).toEqual([4, [4]])
    fail()
    await pass()
    expect(counted()).toBe(0)
  })

  it("with an unknown outcome loses the units, and does not charge them twice", async () => {
    const { takeEach, take, counted, fail, lost, store, pass } = open()
    takeEach(4)
    fail(UNKNOWN)
    await pass()
    fail()
    // The shared count is still unknown, so the units still count in this process.
    expect(take(check(0)).checks[0]?.state.current).toBe(4)
    expect(store.status?.writeBack).toEqual({ lost: 4, failingMs: 0 })
    expect(lost[0]?.error.message).toBe("The shared store did not confirm 4 units: late.")
    await pass()
    expect(counted()).toBe(0)
    expect(take(check(0)).checks[0]?.state.current).toBe(0)
  })

  it("while it reads the shared count does not change the known count", async () => {
    const { takeEach, counted, fail, pass } = open({}, { failing: ["read"] })
    takeEach(4)
    fail(UNKNOWN)
    await pass()
    expect([counted(), takeEach(9)]).toEqual([4, 6])
  })

  it("ends after a second if the shared store does not respond at all", async () => {
    const { takeEach, fail, pass, lost } = open({ settleMs: 1 })
    fail(() => new Promise(() => {}))
    takeEach(1)
    await pass(1)
    await new Promise((resolve) => setTimeout(resolve, 1_100))
    expect(lost).toMatchObject([{ type: "charges-lost", units: 1 }])
  })

  it("three times is reported in results until a settlement succeeds", async () => {
    const { take, fail, pass } = open({}, { failing: ["refund", "read"] })
    const condition = () => {
      const { isRemembered = false, isDegraded = false } = take(check(0))
      return [isRemembered, isDegraded]
    }
    const ledger = [condition()]
    fail(GONE)
    for (let i = 0; i < 4; i++) {
      await pass()
      ledger.push(condition())
    }
    expect(take(check(0), check(0, LOG)).isDegraded).toBe(true)
    fail()
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

  it("with an error is reported with this error", async () => {
    const { take, fail, pass } = open({}, { failing: ["refund"] })
    const cause = new StoreUnavailableError("Redis failed: NOPERM", { outcome: "not-applied" })
    fail(cause)
    take(check(1))
    for (let i = 0; i < 3; i++) {
      await pass()
      take(check(1))
    }
    const message = "The store decided without the shared counters: Redis failed: NOPERM"
    expect(take(check(1))).toMatchObject({
      isDegraded: true,
      failure: { kind: "unavailable", message, cause },
    })
  })

  it("without any reply is reported after 1.2 seconds without pauses, until a reply arrives", async () => {
    const { take, takeEach, pass, answer } = open({}, { slow: ["refund"] })
    const isDegraded = () => take(check(0)).isDegraded === true
    takeEach(1)
    await pass()
    await pass(1_199)
    expect(isDegraded()).toBe(false)
    await pass(1)
    expect(isDegraded()).toBe(true)
    await answer()
    expect(isDegraded()).toBe(false)
    await pass(60_000)
    expect(isDegraded()).toBe(false)
  })

  it("at the same time as others counts once", async () => {
    const { take, takeOfEach, fail, pass } = open()
    fail(GONE)
    takeOfEach(300)
    await pass()
    expect(take(check(0)).isDegraded).toBeUndefined()
  })

  it("lets only a few counters retry during an outage, and settles all counters afterwards", async () => {
    const { takeOfEach, fail, pass, calls, counted } = open()
    fail(GONE)
    takeOfEach(300)
    await pass()
    expect(calls.refunds).toHaveLength(300)
    await pass()
    expect(calls.refunds).toHaveLength(364)
    fail()
    for (let i = 0; i < 5; i++) await pass(SETTLE_MS)
    expect(calls.refunds).toHaveLength(664)
    for (let i = 0; i < 300; i++) expect(counted(CLIENT, `${i}`)).toBe(1)
  })
})

describe("a shared store that does not respond", () => {
  /** Opens a write-back store whose shared store does not respond until the test calls `end`. */
  function silent(options: WriteBackStoreOptions = {}) {
    const world = open(options, { slow: ["refund"] })
    world.fail(UNKNOWN)
    const { waiting, calls, lost } = world
    return {
      ...world,
      peeked: () => calls.reads.flat().length,
      async end() {
        for (const answer of waiting.splice(0)) answer()
        await settle()
      },
      unitsLost: () => lost.reduce((sum, { units }) => sum + units, 0),
    }
  }

  it("receives charges of at most 4,096 counters at a time", async () => {
    const { takeOfEach, calls, pass } = silent()
    takeOfEach(6_000)
    await pass()
    for (let sweep = 0; sweep < 9; sweep++) await pass(SETTLE_MS / 10)
    expect(calls.refunds).toHaveLength(4_096)
  })

  it("receives no reads after a charge without a reply, and then receives one charge at a time", async () => {
    const { takeOfEach, calls, peeked, pass, end } = silent()
    takeOfEach(300)
    await pass()
    takeOfEach(300)
    await end()
    await pass()
    await pass()
    expect([calls.refunds.length, peeked()]).toEqual([301, 0])
    await end()
    await pass()
    expect([calls.refunds.length, peeked()]).toEqual([302, 0])
  })

  it("receives separate reads of each counter only if it responds meanwhile", async () => {
    const { take, peeked, pass } = silent()
    for (let i = 0; i < 300; i++) take(check(0, CLIENT, { partition: `${i}` }))
    await pass()
    expect(peeked()).toBe(300)
  })

  it("cannot fill the memory, because charges of evicted counters above maxKeys are reported as lost", async () => {
    const { takeOfEach, calls, pass, lost, unitsLost, end, store } = silent({ maxKeys: 1_500 })
    takeOfEach(10_000)
    expect(lost).toEqual([])
    await pass()
    // 1,500 counters in the table and 1,500 evicted counters may wait.
    expect(unitsLost()).toBeGreaterThanOrEqual(10_000 - 2 * 1_500)
    expect(lost).toHaveLength(1)
    expect(lost[0]?.error.message).toMatch(/More counters wait to be charged than maxKeys allows\.$/)
    for (let sweep = 0; sweep < 9; sweep++) await pass(SETTLE_MS / 10)
    expect(calls.refunds.length + unitsLost()).toBe(10_000)
    await end()
    await store.close()
    expect(unitsLost()).toBe(10_000)
  })
})

describe("a full table", () => {
  it("evicts the least recently used counter, and still charges its units", async () => {
    const { take, clock, counted, calls, pass } = open({ maxKeys: 3 })
    for (const partition of ["ann", "bob", "eve", "joe"]) {
      take(check(2, CLIENT, { partition }))
      clock.advance(1)
    }
    // Ann's counter was evicted. Her new counter starts with the units that have not been charged.
    expect(take(check(0)).checks[0]?.state.current).toBe(2)
    await pass()
    expect(["ann", "bob", "eve", "joe"].map((partition) => counted(CLIENT, partition))).toEqual([2, 2, 2, 2])
    expect(calls.refunds).toHaveLength(4)
    // Only counts of counters in the table are read from the shared store.
    expect(
      calls.reads
        .flat()
        .slice(0, 3)
        .map(({ partition }) => partition),
    ).toEqual(["eve", "joe", "ann"])
  })

  it("is avoided by removing counters that no longer have an effect", async () => {
    const { take, calls, pass } = open()
    take(check(2))
    await pass()
    await pass(120_000)
    for (const partition of ["bob", "eve", "joe"]) take(check(1, CLIENT, { partition }))
    take(check(0))
    // A counter that is still in the table would report the age of its count.
    expect(take(check(0)).checks[0]?.ageMs).toBe(0)
    expect(calls.reads).toHaveLength(1)
  })

  it("does not remove counters that still have an effect", async () => {
    const { take, pass } = open()
    take(check(2))
    await pass()
    await pass(119_800)
    for (const partition of ["bob", "eve", "joe"]) take(check(1, CLIENT, { partition }))
    expect(take(check(0)).checks[0]?.ageMs).toBe(119_800)
  })
})

describe("peek", () => {
  it("responds from this process while units are in flight", async () => {
    const { store, take, pass } = open({}, { slow: ["refund"] })
    take(check(4))
    await pass()
    expect(peekStore(store, [check(1)])).toMatchObject({ checks: [{ state: { current: 4 } }] })
  })

  it("responds from this process while units are not settled, and otherwise asks the shared store", async () => {
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

  it("responds from this process while the shared store fails", async () => {
    const { store, take, fail, pass } = open()
    take(check(4))
    fail(UNKNOWN)
    await pass()
    expect(await peekStore(store, [check(1)])).toMatchObject({ checks: [{ state: { current: 4 } }] })
  })
})

describe("reset", () => {
  const KEYS = [{ policy: CLIENT, partition: "ann" }]

  it("drops the known count and the pending units", async () => {
    const { store, takeEach, counted, calls, pass } = open()
    takeEach(4)
    await pass()
    takeEach(5)
    await store.reset(KEYS)
    await pass()
    expect([counted(), calls.refunds.length, takeEach(99)]).toEqual([0, 1, 10])
  })

  it.each([
    ["a request that fails", ["take"]],
    ["a charge that fails", ["refund"]],
  ] as const)("discards the units of later replies: %s", async (_, failing) => {
    const { store, takeEach, pass, fail, answer, calls } = open({}, { slow: ["take", "refund"], failing })
    takeEach(4)
    await pass()
    const asked = Promise.allSettled([store.take([check(3), check(1, LOG)])])
    fail(GONE)
    await store.reset(KEYS, 10)
    for (let i = 0; i < 2; i++) await answer()
    await asked
    for (let i = 0; i < 3; i++) await pass()
    // Further calls would remove or add units of other processes.
    expect(calls.order).toEqual(["refund -4", "reset"])
    expect(takeEach(99)).toBeGreaterThan(5)
  })

  it("that fails still charges the pending units", async () => {
    const { store, takeEach, counted, fail, pass } = open({}, { failing: ["reset"] })
    takeEach(4)
    fail(GONE)
    await expect(store.reset(KEYS)).rejects.toBe(GONE)
    expect(takeEach(99)).toBe(6)
    await pass()
    expect(counted()).toBe(10)
  })
})

describe("closing", () => {
  it("waits for requests in flight, whose units may return", async () => {
    const { store, fail, answer, calls } = open({}, { slow: ["take"] })
    const asked = store.take([check(3), check(1, LOG)])
    fail(GONE)
    const closed = store.close()
    void answer()
    await expect(asked).rejects.toBe(GONE)
    await closed
    expect(calls.refunds).toEqual([])
  })

  it("loses units that the shared store no longer accepts, and an event reports the loss", async () => {
    const { store, takeEach, fail, lost, pass } = open({}, { failing: ["refund"] })
    takeEach(4)
    fail(GONE)
    await pass()
    await store.close()
    expect(lost.map(({ units }) => units)).toEqual([4])
  })
})
