import { describe, expect, it } from "vitest"
import type { CounterState } from "../../algorithms/algorithm.ts"
import { InvalidOptionError, StoreUnavailableError } from "../../ground/errors.ts"
import { type ManualClock, manualClock } from "../../ground/manual-clock.ts"
import type { Policy } from "../../ground/policy.ts"
import { peekStore } from "../peek-store.ts"
import type { Check, EvictionEvent, StoreResult } from "../store.ts"
import { type MemoryStore, type MemoryStoreOptions, memoryStore } from "./memory-store.ts"
import { parseOptions } from "./options.ts"

const MINUTE = 60_000
const POLICY: Policy = {
  name: "login",
  counter: "login-1m",
  algorithm: "sliding-window",
  limit: 5,
  windowMs: MINUTE,
  align: "epoch",
}
const HOURLY: Policy = { ...POLICY, counter: "hourly", limit: 100, windowMs: 60 * MINUTE }

function check(partition: string, cost = 1, more: Partial<Check> = {}): Check {
  return { policy: POLICY, partition, cost, shadow: false, ...more }
}

/** Returns the state of a counter whose window began at `startMs`. */
function stateFrom(startMs: number): CounterState {
  return { startMs, current: 1, previous: 0 }
}

function takeOne(store: MemoryStore, ...checks: Check[]): StoreResult {
  return store.take(checks) as StoreResult
}

function countOf(store: MemoryStore, partition: string, policy: Policy = POLICY): number {
  const counted = (peekStore(store, [check(partition, 0, { policy })]) as StoreResult).checks[0]
  return (counted?.state.previous ?? 0) + (counted?.state.current ?? 0)
}

/** Creates a store of `maxKeys` keys. Returns the store with its clock and the events that it has emitted. */
function open(maxKeys: number): { store: MemoryStore; clock: ManualClock; events: EvictionEvent[] } {
  const clock = manualClock()
  const store = memoryStore({ maxKeys, clock })
  const events: EvictionEvent[] = []
  store.subscribe((event) => events.push(event))
  return { store, clock, events }
}

/** Returns the next process warning that contains `part`. Other warnings, from earlier tests, may come first. */
function nextWarning(part: string): Promise<string> {
  return new Promise((resolve) => {
    process.on("warning", function heard({ message }) {
      if (!message.includes(part)) return
      process.off("warning", heard)
      resolve(message)
    })
  })
}

it("a memory store is not shared, because each process has its own store", () => {
  expect(memoryStore().isShared).toBe(false)
})

describe("the options of memoryStore", () => {
  it("default to a million keys", () => {
    // With a tenth of these keys, a flood of made-up clients would evict blocked clients.
    expect([{}, { maxKeys: undefined }].map((given) => parseOptions(given).maxKeys)).toEqual([1e6, 1e6])
  })

  it.each([
    [undefined],
    [{}],
    [{ maxKeys: 1 }],
    [{ maxKeys: 100_000_000 }],
    [{ maxKeys: undefined, clock: undefined }],
    [{ clock: Date }],
  ])("such as %j create a store that admits requests", (options) => {
    const store = memoryStore(options as MemoryStoreOptions)
    expect(takeOne(store, check("alice"))).toMatchObject({
      granted: true,
      checks: [{ state: { current: 1 }, taken: 1 }],
    })
  })

  it.each([
    [
      { maxKeys: 0 },
      "maxKeys: 0 is not a valid number of keys; accepted: a whole number from 1 to 100000000",
    ],
    [{ maxKeys: -1 }, "maxKeys: -1 is not a valid number of keys"],
    [{ maxKeys: 1.5 }, "maxKeys: 1.5 is not a valid number of keys"],
    [{ maxKeys: Number.NaN }, "maxKeys: NaN is not a valid number of keys"],
    [{ maxKeys: Number.POSITIVE_INFINITY }, "maxKeys: Infinity is not a valid number of keys"],
    [{ maxKeys: 100_000_001 }, "maxKeys: 100000001 is not a valid number of keys"],
    [{ maxKeys: "1000" }, 'maxKeys: "1000" is not a valid number of keys'],
    [{ maxKeys: null }, "maxKeys: null is not a valid number of keys"],
    [{ maxKeys: Object.create(null) }, "maxKeys: {} is not a valid number of keys"],
    [
      { clock: null },
      "clock: null is not a clock; accepted: { now(): epoch milliseconds, wait?(ms, signal) }",
    ],
    [{ clock: 5 }, "clock: 5 is not a clock"],
    [{ clock: { now: 5 } }, 'clock: {"now":5} is not a clock'],
    [{ clock: () => 5 }, "clock: a function is not a clock"],
    [{ maxkeys: 5 }, 'maxkeys: is not an option of memoryStore; did you mean "maxKeys"?'],
    [null, "null is not an options object; accepted: an object with maxKeys, clock"],
    [1_000, "1000 is not an options object"],
  ])("such as %j are rejected immediately: %s", (options, message) => {
    expect(() => memoryStore(options as MemoryStoreOptions)).toThrow(InvalidOptionError)
    expect(() => memoryStore(options as MemoryStoreOptions)).toThrow(message)
  })

  it("are all listed in the error if several are wrong", () => {
    const wrong = { maxKeys: 0, clock: 1, ttl: 5 } as unknown as MemoryStoreOptions
    const problems = thrownBy(() => memoryStore(wrong)).problems
    expect(problems.map(({ path }) => path)).toEqual(["maxKeys", "clock", "ttl"])
  })

  it("appear in errors without nested values, and with an empty path if they are null", () => {
    const wrong = { maxKeys: { secret: { password: "hunter2" } } } as unknown as MemoryStoreOptions
    expect(thrownBy(() => memoryStore(wrong)).message).not.toContain("hunter2")
    const none = null as unknown as MemoryStoreOptions
    expect(thrownBy(() => memoryStore(none)).problems.map(({ path }) => path)).toEqual([""])
  })

  function thrownBy(call: () => unknown): InvalidOptionError {
    try {
      call()
    } catch (error) {
      if (error instanceof InvalidOptionError) return error
    }
    throw new Error("No InvalidOptionError was thrown.")
  }
})

describe("a clock", () => {
  it.each([
    Number.NaN,
    -1,
    -0.5,
    Number.POSITIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
    undefined,
    "1704067200000",
    1_704_067_200_000n,
    // A clock that returns microseconds, about 1.7e15, which as milliseconds is the year 55,000.
    Date.UTC(2024, 0, 1) * 1_000,
  ])("that returns %s makes every call to the store fail", (now) => {
    const store = memoryStore({ clock: { now: () => now as number } })
    expect(() => store.take([check("alice")])).toThrow(StoreUnavailableError)
    expect(() => peekStore(store, [check("alice")])).toThrow(StoreUnavailableError)
    expect(() => store.refund([])).toThrow(StoreUnavailableError)
    expect(store.size).toBe(0)
  })

  it("may return an invalid time and recover without loss of earlier counts", () => {
    let now = Date.UTC(2024, 0, 1)
    const store = memoryStore({ clock: { now: () => now } })
    takeOne(store, check("alice", 4))
    now = Number.NaN
    expect(() => takeOne(store, check("alice"))).toThrow("NaN")
    now = Date.UTC(2024, 0, 1) + 1
    expect(takeOne(store, check("alice", 2)).granted).toBe(false)
    expect(takeOne(store, check("alice", 1)).granted).toBe(true)
  })

  it("may return any time from the epoch to the year 2106", () => {
    const clock = manualClock(0)
    const store = memoryStore({ clock })
    expect(takeOne(store, check("alice", 5)).granted).toBe(true)
    expect(takeOne(store, check("alice", 1)).granted).toBe(false)
    clock.set(0xffff_ffff * 1_000)
    expect(takeOne(store, check("alice", 5)).granted).toBe(true)
    expect(takeOne(store, check("alice", 1)).granted).toBe(false)
  })

  it("that is set back moves each counter only once, so that the wait of a peek stays correct", () => {
    const { store, clock } = open(10)
    clock.advance(10 * MINUTE)
    takeOne(store, check("alice", 5))
    clock.advance(-5 * MINUTE)
    expect(peekStore(store, [check("alice")])).toMatchObject({
      granted: false,
      checks: [{ state: { current: 5 } }],
    })
    clock.advance(MINUTE)
    expect(peekStore(store, [check("alice")])).toMatchObject({
      granted: false,
      checks: [{ state: { previous: 5 } }],
    })
    clock.advance(1)
    expect(takeOne(store, check("alice")).granted).toBe(true)
  })
})

describe("the memory store", () => {
  it("returns values, not promises", () => {
    const { store } = open(10)
    expect(store.take([check("alice")])).toHaveProperty("granted", true)
    expect(store.read([check("alice")])).toHaveProperty("counters")
    expect(store.refund([])).toBeUndefined()
    expect(store.reset([])).toBeUndefined()
    expect(store.close()).toBeUndefined()
  })

  it("contains only keys with units in use, and none after refusals, zero costs or full refunds", () => {
    const { store, clock } = open(10)
    takeOne(store, check("alice", 0))
    takeOne(store, check("alice", 6))
    takeOne(store, check("alice", 6, { shadow: true }))
    expect(store.size).toBe(0)
    takeOne(store, check("alice", 0), check("bob", 6, { shadow: true }))
    takeOne(store, check("alice", 1), check("bob", 6))
    peekStore(store, [check("alice")])
    expect(store.size).toBe(0)
    store.reset([check("alice")])
    expect(store.size).toBe(0)
    takeOne(store, check("alice", 2))
    takeOne(store, check("bob", 1))
    expect(store.size).toBe(2)
    store.refund([{ policy: POLICY, partition: "alice", units: 1, after: stateFrom(clock.now()) }])
    expect(store.size).toBe(2)
    store.refund([{ policy: POLICY, partition: "alice", units: 1, after: stateFrom(clock.now()) }])
    expect(store.size).toBe(1)
    store.reset([check("bob")])
    expect(store.size).toBe(0)
  })

  it("stores no key for a penalty without refusals", () => {
    const { store } = open(10)
    const penalty = { refusals: 3, withinMs: MINUTE, forMs: [MINUTE] }
    const policy: Policy = { ...POLICY, counter: "penalty", algorithm: "penalty", limit: 3, penalty }
    expect(takeOne(store, check("alice"), check("alice", 1, { policy })).granted).toBe(true)
    expect([store.size, countOf(store, "alice", policy)]).toEqual([1, 0])
  })

  it("returns each limit's own state of a shared bucket, even if a refusal writes nothing", () => {
    const { store, clock } = open(10)
    const bucket = (limit: number): Partial<Check> => ({
      policy: { ...POLICY, algorithm: "token-bucket", limit, countRejected: true },
    })
    takeOne(store, check("alice", 10, bucket(10)))
    clock.advance(12_000)
    const states = ({ checks }: StoreResult) => checks.map((counted) => counted?.state)
    const both = [check("alice", 1, bucket(5)), check("alice", 1, bucket(3))]
    const looked = peekStore(store, both)
    const told = states(takeOne(store, ...both))
    expect(told).toEqual(states(looked as StoreResult))
    // With a limit of five, one unit has been refilled. With a limit of three, three fifths of a unit have been
    // refilled.
    expect(told.map((state) => [state?.current, state?.previous])).toEqual([
      [9, 0],
      [9, 24_000],
    ])
  })

  it("writes nothing if units of a past window are refunded", () => {
    const { store, clock } = open(10)
    const after = stateFrom(clock.now() - 5 * MINUTE)
    store.refund([{ policy: POLICY, partition: "alice", units: 1, after }])
    expect(store.size).toBe(0)
  })

  it("discards all counters and throws on every call after it is closed", () => {
    const { store } = open(10)
    takeOne(store, check("alice"))
    store.close()
    expect(store.size).toBe(0)
    expect(() => takeOne(store, check("alice"))).toThrow("The memory store has been closed.")
  })
})

describe("a full memory store", () => {
  it("with space for one key still decides a request with two checks, and retains only the last counter", () => {
    const { store } = open(1)
    const answer = takeOne(store, check("alice", 2), check("alice", 3, { policy: HOURLY }))
    expect(answer.checks.map((counted) => counted?.taken)).toEqual([2, 3])
    expect([countOf(store, "alice"), countOf(store, "alice", HOURLY), store.size]).toEqual([0, 3, 1])
  })

  it("does not evict a refused client during a flood of 50,000 new clients", () => {
    const { store, clock, events } = open(5_000)
    takeOne(store, check("brute force", 5))
    expect(takeOne(store, check("brute force")).granted).toBe(false)
    for (let i = 0; i < 50_000; i++) {
      if (i % 1_000 === 0) clock.advance(500)
      takeOne(store, check(`junk ${i}`))
    }
    expect([store.size, takeOne(store, check("brute force")).granted]).toEqual([5_000, false])
    expect(events.filter(({ releaseAfterMs }) => releaseAfterMs > 0)).toEqual([])
  })

  it("protects a client that one of several checks refused", () => {
    const { store, events } = open(100)
    takeOne(store, check("brute force", 5), check("brute force", 5, { policy: HOURLY }))
    const refused = takeOne(store, check("brute force"), check("brute force", 1, { policy: HOURLY }))
    expect(refused.granted).toBe(false)
    for (let i = 0; i < 2_000; i++) takeOne(store, check(`junk ${i}`))
    expect(countOf(store, "brute force")).toBe(5)
    expect(events.filter(({ releaseAfterMs }) => releaseAfterMs > 0)).toEqual([])
  })

  it("still protects a refused client after units of a past window are refunded", () => {
    const { store, clock, events } = open(100)
    takeOne(store, check("brute force", 5))
    takeOne(store, check("brute force"))
    const after = stateFrom(clock.now() - 5 * MINUTE)
    store.refund([{ policy: POLICY, partition: "brute force", units: 1, after }])
    for (let i = 0; i < 2_000; i++) takeOne(store, check(`junk ${i}`, 1, { policy: HOURLY }))
    expect(countOf(store, "brute force")).toBe(5)
    expect(events.filter(({ releaseAfterMs }) => releaseAfterMs > 0)).toEqual([])
  })

  it("still protects a client whose next request has a lower cost and is refused by another check", () => {
    const { store, events } = open(100)
    takeOne(store, check("client", 4))
    expect(takeOne(store, check("client", 2)).granted).toBe(false)
    takeOne(store, check("other", 5))
    expect(takeOne(store, check("client", 1), check("other", 1)).granted).toBe(false)
    for (let i = 0; i < 2_000; i++) takeOne(store, check(`junk ${i}`, 1, { policy: HOURLY }))
    expect(countOf(store, "client")).toBe(4)
    expect(events.filter(({ releaseAfterMs }) => releaseAfterMs > 0)).toEqual([])
  })

  it.each([
    ["a shadow check alone", [check("client", 1, { shadow: true })]],
    ["a shadow check beside a real one", [check("client", 1, { shadow: true }), check("other")]],
    ["a shadow check beside a check that refuses", [check("client", 1, { shadow: true }), check("other", 6)]],
    ["a cost that never fits", [check("client", 6)]],
    ["a cost that never fits, beside another check", [check("client", 6), check("other")]],
    ["a cost of 0", [check("client", 0)]],
  ])("does not protect a client after %s", (_what, checks) => {
    const { store, events } = open(100)
    takeOne(store, check("client", 5))
    takeOne(store, ...checks)
    for (let i = 0; i < 2_000; i++) takeOne(store, check(`junk ${i}`, 1, { policy: HOURLY }))
    expect(countOf(store, "client")).toBe(0)
    expect(events.filter(({ releaseAfterMs }) => releaseAfterMs > 0)).toEqual([])
  })

  it("protects a client only until its requests would be admitted again", () => {
    const { store, clock, events } = open(100)
    takeOne(store, check("client", 5))
    takeOne(store, check("client"))
    clock.advance(2 * MINUTE - 1_000)
    for (let i = 0; i < 2_000; i++) takeOne(store, check(`junk ${i}`, 1, { policy: HOURLY }))
    expect(countOf(store, "client")).toBe(0)
    expect(events.filter(({ releaseAfterMs }) => releaseAfterMs > 0)).toEqual([])
  })

  it("protects a client whose permits are all held while it keeps asking, but not after a release", () => {
    const { store, clock, events } = open(100)
    const permits: Policy = { ...POLICY, counter: "permits", algorithm: "in-flight" }
    const ask = (cost: number) => takeOne(store, check("client", cost, { policy: permits }))
    const flood = () => {
      for (let i = 0; i < 2_000; i++) takeOne(store, check(`junk ${i}`, 1, { policy: HOURLY }))
    }
    const after = ask(5).checks[0]?.state as CounterState
    for (let second = 0; second < 5; second++) {
      expect(ask(1).granted).toBe(false)
      flood()
      clock.advance(1_000)
    }
    expect(countOf(store, "client", permits)).toBe(5)
    ask(1)
    store.refund([{ policy: permits, partition: "client", units: 1, after }])
    flood()
    expect(countOf(store, "client", permits)).toBe(0)
    expect(events.filter(({ releaseAfterMs }) => releaseAfterMs > 0)).toEqual([])
  })

  it("evicts the refused client that is released soonest if all are refused, and emits an event", () => {
    const { store, clock, events } = open(3)
    for (const [client, cost] of [
      ["a", 1],
      ["b", 3],
      ["c", 5],
    ] as const) {
      takeOne(store, check(client, 5))
      expect(takeOne(store, check(client, cost)).granted).toBe(false)
    }
    takeOne(store, check("d"))
    // The previous window contains 5 units and the limit is 5. One more unit fits when floor(5 * (W - e) / W) is 4,
    // which is 1 ms after the end of the window.
    const lost = { type: "evicted", counters: 1, emptyAfterMs: 2 * MINUTE }
    expect(events).toEqual([{ ...lost, releaseAfterMs: MINUTE + 1_000 }])
    expect(["a", "b", "c", "d"].map((client) => countOf(store, client))).toEqual([0, 5, 5, 1])
    takeOne(store, check("e"))
    expect(events.slice(1)).toEqual([{ ...lost, releaseAfterMs: 0 }])
    clock.advance(MINUTE)
    expect(takeOne(store, check("c")).granted).toBe(false)
  })

  it.each([
    ["sliding-window", false],
    ["sliding-window", true],
    ["token-bucket", false],
    ["fixed-window", false],
  ] as const)(
    "enforces a %s limit for a client that sends one request per 100 new keys (shadow: %s)",
    (algorithm, shadow) => {
      const { store } = open(1_000)
      const policy: Policy = { ...HOURLY, algorithm }
      let admitted = 0
      for (let asked = 0; asked < 1_000; asked++) {
        const answer = takeOne(store, check("client", 1, { policy, shadow }))
        // A shadow check never refuses, and takes no units if it does not fit.
        if (answer.granted && answer.checks[0]?.taken === 1) admitted++
        for (let i = 0; i < 100; i++) takeOne(store, check(`new ${asked} ${i}`, 1, { policy }))
      }
      expect(store.size).toBe(1_000)
      expect(admitted).toBeGreaterThanOrEqual(100)
      expect(admitted).toBeLessThanOrEqual(105)
    },
  )

  it("emits at most ten events per second, and reports further evictions with a later request", () => {
    const { store, clock, events } = open(1)
    const counted = () => events.reduce((sum, { counters }) => sum + counters, 0)
    takeOne(store, check("client"))
    for (let i = 0; i < 100; i++) takeOne(store, check(`new ${i}`))
    clock.advance(999)
    takeOne(store, check("new 98"))
    expect([events.length, counted(), store.evictions]).toEqual([10, 10, 101])
    clock.advance(1)
    takeOne(store, check("new 99"))
    expect([events.length, counted()]).toEqual([20, 102])
    clock.advance(1_000)
    takeOne(store, check("new 100"))
    expect([events.length, counted(), store.evictions]).toEqual([21, 103, 103])
  })
})

describe("listeners of a memory store", () => {
  /** Opens a store of one key whose client is refused. The next client evicts this client's counter. */
  function full(): ReturnType<typeof open> {
    const opened = open(1)
    takeOne(opened.store, check("alice", 5))
    takeOne(opened.store, check("alice"))
    return opened
  }

  it("are called until they unsubscribe, even if the same function is subscribed twice", () => {
    const { store } = full()
    let told = 0
    const listener = () => {
      told++
    }
    const stopOne = store.subscribe(listener)
    const stopOther = store.subscribe(listener)
    takeOne(store, check("bob", 5))
    expect(told).toBe(2)
    stopOne()
    stopOne()
    takeOne(store, check("bob"))
    takeOne(store, check("carol", 5))
    expect(told).toBe(3)
    stopOther()
    takeOne(store, check("carol"))
    takeOne(store, check("dave"))
    expect(told).toBe(3)
  })

  it("may call the store, because the request that caused the eviction is already counted", () => {
    const { store, events } = full()
    const seen: number[] = []
    store.subscribe(() => {
      // The listener itself causes another eviction, which emits another event.
      if (seen.length > 0) return
      seen.push(countOf(store, "bob"), store.size)
      takeOne(store, check("carol", 2))
      seen.push(countOf(store, "carol"), store.size)
    })
    expect(takeOne(store, check("bob", 3)).checks).toMatchObject([{ state: { current: 3 }, taken: 3 }])
    expect(seen).toEqual([3, 1, 2, 1])
    expect([events.length, store.size, countOf(store, "carol")]).toEqual([2, 1, 2])
  })

  it("that throw do not affect the result or other listeners, and cause a warning", async () => {
    const { store } = full()
    const warned = nextWarning("no time")
    let told = 0
    store.subscribe(() => {
      throw new Error("no time")
    })
    store.subscribe(() => {
      told++
    })
    expect(takeOne(store, check("bob", 5)).granted).toBe(true)
    expect([told, countOf(store, "bob")]).toEqual([1, 5])
    expect(await warned).toContain("A listener of the memory store failed: Error: no time")
  })

  it("that reject asynchronously cause a warning and do not end the process", async () => {
    const { store } = full()
    const warned = nextWarning("too late")
    store.subscribe((async () => {
      throw new Error("too late")
    }) as () => void)
    expect(takeOne(store, check("bob", 5)).granted).toBe(true)
    expect(await warned).toContain("A listener of the memory store failed: Error: too late")
  })

  it("are called for each client that a call evicts, after all checks of the call are counted", () => {
    const { store, events } = full()
    const sizes: number[] = []
    store.subscribe(() => sizes.push(countOf(store, "carol")))
    store.take([check("bob", 5), check("carol", 2)])
    expect([events.length, sizes]).toEqual([2, [2, 2]])
  })
})
