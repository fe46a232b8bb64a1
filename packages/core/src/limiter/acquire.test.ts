import { setImmediate as nextTurn } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import { type Decision, RateLimitExceededError } from "../decision/decision.ts"
import { ClosedError } from "../ground/errors.ts"
import { type ManualClock, manualClock } from "../ground/manual-clock.ts"
import type { RequestFacts } from "../request/request.ts"
import type { Rule } from "../rules/rule.ts"
import { memoryStore } from "../stores/memory/memory-store.ts"
import type { Store } from "../stores/store.ts"
import { countingStore } from "../stores/testing/counting-store.ts"
import { methodsOf } from "../stores/testing/methods-of.ts"
import { createLimiter } from "./create-limiter.ts"
import type { AcquireOptions, Limiter } from "./interface/limiter.ts"
import type { LimiterOptions } from "./options/options.ts"

const SECOND = 1_000
const ALICE: RequestFacts = { remoteAddress: "192.0.2.1" }
const BOB: RequestFacts = { remoteAddress: "192.0.2.2" }
const QUIET = { warn() {}, error() {} }
/** Three units per second, all available at the start of a second. */
const THREE = { limit: 3, window: "1 second", algorithm: "fixed-window", name: "three" } as const
const LEAKY = { limit: 10, window: "1 second", algorithm: "leaky-bucket", burst: 5, name: "leaky" } as const

function limiterWith(options: LimiterOptions<RequestFacts>) {
  const clock = manualClock()
  const counting = countingStore(memoryStore({ clock }))
  const limiter = createLimiter({ clock, store: counting.store, logger: QUIET, ...options })
  return { clock, limiter, ...counting }
}

/** Records when each request is admitted, in milliseconds from now, or the error that refused it. */
function diary(limiter: Limiter, clock: ManualClock) {
  const startMs = clock.now()
  const entries: string[] = []
  return {
    entries,
    acquire(name: string, options: AcquireOptions = {}, request: RequestFacts = ALICE): Promise<void> {
      const write = (what: string) => void entries.push(`${clock.now() - startMs} ${name}${what}`)
      return limiter.acquire(request, options).then(
        () => write(""),
        (error: Error) => write(`: ${error instanceof RateLimitExceededError ? "refused" : error.message}`),
      )
    },
    /** Advances the clock step by step, so that each waiting request is woken at its own time. */
    async pass(ms: number, stepMs = 1): Promise<void> {
      await nextTurn()
      for (let passed = 0; passed < ms; passed += stepMs) {
        clock.advance(stepMs)
        await nextTurn()
      }
    },
  }
}

async function refusalOf(acquiring: Promise<Decision>): Promise<Decision> {
  const error = await acquiring.then(
    () => expect.unreachable("it was admitted"),
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(RateLimitExceededError)
  return (error as RateLimitExceededError).decision
}

describe("acquire", () => {
  it("waits exactly as long as the refusal says, and does not call the store before that", async () => {
    const { limiter, clock, calls } = limiterWith(THREE)
    const { acquire, pass, entries } = diary(limiter, clock)
    clock.advance(300)
    await limiter.decide(ALICE, { cost: 3 })
    const waiting = acquire("late")
    await pass(699)
    expect([entries, calls.takes]).toEqual([[], 2])
    await pass(1)
    await waiting
    expect([entries, calls.takes]).toEqual([["1000 late"], 3])
  })

  it("admits waiting requests in their order of arrival, even if a later one costs less", async () => {
    const { limiter, clock } = limiterWith(THREE)
    const { acquire, pass, entries } = diary(limiter, clock)
    await limiter.decide(ALICE, { cost: 2 })
    for (const [name, cost] of [
      ["a", 2],
      ["b", 1],
      ["c", 3],
      ["d", 1],
    ] as const)
      void acquire(name, { cost })
    await pass(3 * SECOND, 250)
    expect(entries).toEqual(["1000 a", "1000 b", "2000 c", "3000 d"])
  })

  it("serves a higher priority first, from its options or else from the option of the limiter", async () => {
    const clock = manualClock()
    const warned: string[] = []
    const limiter = createLimiter<{ priority?: number }>({
      ...{ limit: 1, window: "1 second", field: "service", algorithm: "fixed-window", clock },
      logger: QUIET,
      priority: ({ priority }) => priority as number,
    })
    limiter.on("warning", ({ code, message }) => void warned.push(`${code}: ${message}`))
    const order: string[] = []
    const acquire = (name: string, request: object, options: object) =>
      limiter.acquire(request, options).then(() => void order.push(name))
    const all = [
      acquire("admitted", {}, {}),
      acquire("fails", {}, {}),
      acquire("fails too", { priority: 1_001 }, {}),
      acquire("low", { priority: -1 }, {}),
      acquire("high", { priority: 1 }, {}),
      acquire("highest", { priority: -1_000 }, { priority: 1_000 }),
    ]
    for (let i = 0; i < 6; i++) {
      await nextTurn()
      clock.advance(1_000)
    }
    await Promise.all(all)
    expect(order).toEqual(["admitted", "highest", "high", "fails", "fails too", "low"])
    expect(warned).toEqual([
      "SLUICE_CALLBACK_FAILED: priority returned undefined. It must return a whole number from -1000 to 1000, not a promise; otherwise the request has priority 0.",
    ])
  })

  it("makes a new request wait behind the others, even if enough units remain for it", async () => {
    const { limiter, clock } = limiterWith(THREE)
    const { acquire, pass, entries } = diary(limiter, clock)
    await limiter.decide(ALICE, { cost: 2 })
    void acquire("dear", { cost: 3 })
    await pass(500, 100)
    void acquire("cheap")
    await pass(1_500, 100)
    expect(entries).toEqual(["1000 dear", "2000 cheap"])
  })

  it("admits a cost of 0 immediately, because it takes nothing", async () => {
    const { limiter, clock } = limiterWith(THREE)
    const { acquire, pass, entries } = diary(limiter, clock)
    void acquire("all", { cost: 3 })
    void acquire("waits")
    void acquire("nothing", { cost: 0 })
    await pass(0)
    expect(entries).toEqual(["0 all", "0 nothing"])
  })

  it("waits again if another call has taken the units in the meantime", async () => {
    const { limiter, clock } = limiterWith(THREE)
    const { acquire, pass, entries } = diary(limiter, clock)
    await limiter.decide(ALICE, { cost: 3 })
    void acquire("patient")
    await pass(999)
    clock.advance(1)
    // `decide` does not join the queue, and the patient request has not been woken yet.
    expect((await limiter.decide(ALICE, { cost: 3 })).allowed).toBe(true)
    await pass(999)
    expect(entries).toEqual([])
    await pass(1)
    expect(entries).toEqual(["2000 patient"])
  })

  it("emits one decision event, even if the store was called several times", async () => {
    const { limiter, clock } = limiterWith(THREE)
    const { acquire, pass } = diary(limiter, clock)
    const told: boolean[] = []
    limiter.on("decision", ({ allowed }) => void told.push(allowed))
    void acquire("all", { cost: 3 })
    void acquire("late")
    void acquire("impatient", { maxWaitMs: 1 })
    await pass(SECOND, 500)
    expect(told).toEqual([true, false, true])
  })

  it("admits a request immediately if no rule applies or the limiter is disabled", async () => {
    expect(await limiterWith({ rules: [] }).limiter.acquire(ALICE)).toMatchObject({
      allowed: true,
      policy: "",
    })
    const { limiter } = limiterWith({ ...THREE, enabled: false })
    for (let i = 0; i < 5; i++) expect((await limiter.acquire(ALICE)).allowed).toBe(true)
  })

  it("does not wait for a shadow rule", async () => {
    const { limiter } = limiterWith({ ...THREE, shadow: true })
    for (let i = 0; i < 5; i++) expect((await limiter.acquire(ALICE)).allowed).toBe(true)
  })

  it("returns a decision that can be refunded", async () => {
    const { limiter } = limiterWith(THREE)
    await limiter.refund(await limiter.acquire(ALICE, { cost: 2 }))
    expect((await limiter.peek(ALICE, { cost: 0 })).remaining).toBe(3)
  })

  it("rejects if the clock cannot wait, and still admits the next request if units remain", async () => {
    const { clock } = limiterWith(THREE)
    const broken = { now: () => clock.now(), wait: () => Promise.reject(new Error("no timers")) }
    const limiter = createLimiter({ ...THREE, clock: broken, logger: QUIET })
    await limiter.acquire(ALICE, { cost: 3 })
    await expect(limiter.acquire(ALICE)).rejects.toThrow("no timers")
    clock.advance(SECOND)
    expect((await limiter.acquire(ALICE)).allowed).toBe(true)
    const leaky = createLimiter({ ...THREE, algorithm: "leaky-bucket", clock: broken, logger: QUIET })
    expect((await leaky.acquire(ALICE)).allowed).toBe(true)
    await expect(leaky.acquire(ALICE)).rejects.toThrow("no timers")
  })
})

describe("requests without a common counter", () => {
  it("do not wait for each other", async () => {
    const { limiter, clock } = limiterWith(THREE)
    const { acquire, pass, entries } = diary(limiter, clock)
    void acquire("alice", { cost: 3 })
    void acquire("alice again")
    void acquire("bob", { cost: 3 }, BOB)
    await pass(SECOND, 500)
    expect(entries).toEqual(["0 alice", "0 bob", "1000 alice again"])
  })

  const rules: Rule[] = [
    { name: "client", limit: 1, window: "1 second", algorithm: "fixed-window", field: "ip" },
    { name: "all", field: "service", limit: 3, window: "1 minute", algorithm: "fixed-window" },
  ]

  it("do not wait for a client that is over its own limit, even if a common rule has remaining units", async () => {
    const { limiter, clock } = limiterWith({ rules })
    const { acquire, pass, entries } = diary(limiter, clock)
    for (const nth of [1, 2, 3]) void acquire(`alice ${nth}`)
    void acquire("bob 1", {}, BOB)
    await pass(999)
    expect(entries).toEqual(["0 alice 1", "0 bob 1"])
    await pass(1)
    expect(entries).toEqual(["0 alice 1", "0 bob 1", "1000 alice 2"])
    // Now "all" has no units left, and both requests wait for it. Alice came first.
    void acquire("bob 2", {}, BOB)
    await pass(59_000, 1_000)
    expect(entries.slice(3)).toEqual(["60000 alice 3", "60000 bob 2"])
  })

  it("are not refused because another client waits, and do not see the wait of that client in their decision", async () => {
    const tenants: Rule[] = [
      { name: "tenant", limit: 1, window: "1 hour", field: "ip" },
      { name: "all", field: "service", limit: 1_000, window: "1 second" },
    ]
    const { limiter } = limiterWith({ rules: tenants })
    await limiter.acquire(ALICE)
    const waiting = limiter.acquire(ALICE)
    const decision = await limiter.acquire(BOB, { maxWaitMs: 60_000 })
    expect(decision).toMatchObject({ allowed: true, policy: "tenant", remaining: 0 })
    await limiter.close()
    await expect(waiting).rejects.toBeInstanceOf(ClosedError)
  })

  it("take nothing from any rule while they wait", async () => {
    const { limiter, clock } = limiterWith({ rules })
    const { acquire, pass } = diary(limiter, clock)
    void acquire("alice 1")
    void acquire("alice 2")
    await pass(500, 100)
    const { checks } = await limiter.peek(BOB, { cost: 0 })
    expect(checks.map(({ remaining }) => remaining)).toEqual([1, 2])
  })
})

describe("a request that can never succeed", () => {
  it.each<[string, LimiterOptions<RequestFacts>, AcquireOptions]>([
    ["cost", THREE, { cost: 4 }],
    ["denied", { ...THREE, deny: ["192.0.2.1"] }, {}],
    ["missing-field", { ...THREE, field: "header:x-key", onMissing: "deny" }, {}],
  ])("is refused immediately for its %s, without a store call", async (refusal, options, how) => {
    const { limiter, calls } = limiterWith(options)
    expect(await refusalOf(limiter.acquire(ALICE, how))).toMatchObject({ refusal, cost: 0 })
    expect(calls.takes).toBe(0)
  })

  it("does not wait for the requests ahead of it", async () => {
    const { limiter, clock } = limiterWith(THREE)
    const { acquire, pass, entries } = diary(limiter, clock)
    void acquire("all", { cost: 3 })
    void acquire("late")
    void acquire("dear", { cost: 4 })
    await pass(0)
    expect(entries).toEqual(["0 all", "0 dear: refused"])
  })

  it("is refused immediately when the store is unavailable and the rule fails closed", async () => {
    const clock = manualClock()
    const inner = memoryStore({ clock })
    const down = { ...countingStore(inner).store, take: () => Promise.reject(new Error("down")) }
    const limiter = createLimiter({ ...THREE, clock, store: down, logger: QUIET, onStoreFailure: "deny" })
    expect(await refusalOf(limiter.acquire(ALICE))).toMatchObject({
      refusal: "store-failure",
      degraded: true,
    })
  })

  it("calls the store again soon after an outage, even if the local wait is long", async () => {
    const clock = manualClock()
    const inner = memoryStore({ clock })
    let isGone = true
    const store: Store = {
      ...methodsOf(inner),
      take: (checks) => {
        if (isGone) throw new Error("gone")
        return inner.take(checks)
      },
    }
    const rule = { limit: 100, window: "1 day", algorithm: "fixed-window" } as const
    const limiter = createLimiter({ ...rule, instances: 100, clock, store, logger: QUIET })
    // This instance's share is one unit.
    expect((await limiter.acquire(ALICE)).degraded).toBe(true)
    const waiting = limiter.acquire(ALICE)
    await nextTurn()
    isGone = false
    clock.advance(SECOND)
    expect(await waiting).toMatchObject({ allowed: true, degraded: false })
    await limiter.close()
  })

  it("waits in the process if the rule falls back to local counters", async () => {
    const clock = manualClock()
    const inner = memoryStore({ clock })
    const down = { ...countingStore(inner).store, take: () => Promise.reject(new Error("down")) }
    const limiter = createLimiter({ ...THREE, clock, store: down, logger: QUIET })
    const { acquire, pass, entries } = diary(limiter, clock)
    void acquire("all", { cost: 3 })
    void acquire("late")
    await pass(SECOND, 500)
    expect(entries).toEqual(["0 all", "1000 late"])
  })
})

describe("maxWaitMs", () => {
  it("refuses a request immediately if its wait would exceed the maximum, and takes nothing", async () => {
    const { limiter, clock } = limiterWith(THREE)
    await limiter.decide(ALICE, { cost: 3 })
    const decision = await refusalOf(limiter.acquire(ALICE, { maxWaitMs: 999 }))
    expect(decision).toMatchObject({ allowed: false, refusal: "quota", retryAfterMs: 1_000, cost: 0 })
    clock.advance(SECOND)
    expect((await limiter.peek(ALICE, { cost: 0 })).remaining).toBe(3)
  })

  it("admits a request whose wait equals the maximum", async () => {
    const { limiter, clock } = limiterWith(THREE)
    const { acquire, pass, entries } = diary(limiter, clock)
    await limiter.decide(ALICE, { cost: 3 })
    void acquire("just", { maxWaitMs: 1_000 })
    await pass(SECOND, 500)
    expect(entries).toEqual(["1000 just"])
  })

  it("of 0 admits or refuses a request without waiting", async () => {
    const { limiter } = limiterWith(THREE)
    expect((await limiter.acquire(ALICE, { cost: 3, maxWaitMs: 0 })).allowed).toBe(true)
    await refusalOf(limiter.acquire(ALICE, { maxWaitMs: 0 }))
  })

  it("refuses a request immediately if the request ahead of it has to wait longer than the maximum", async () => {
    const { limiter, clock } = limiterWith(THREE)
    const { acquire, pass, entries } = diary(limiter, clock)
    await limiter.decide(ALICE, { cost: 2 })
    void acquire("dear", { cost: 3 })
    await pass(400, 100)
    const decision = await refusalOf(limiter.acquire(ALICE, { maxWaitMs: 599 }))
    expect(decision).toMatchObject({ refusal: "quota", retryAfterMs: 600, policy: "three", remaining: 0 })
    void acquire("cheap", { maxWaitMs: 600 })
    await pass(600, 100)
    expect(entries).toEqual(["1000 dear", "1000 cheap: refused"])
  })

  it("refuses queued requests as soon as a request ahead of them has to wait longer than their maximum wait", async () => {
    const { limiter, clock } = limiterWith(THREE)
    const { acquire, pass, entries } = diary(limiter, clock)
    await limiter.decide(ALICE, { cost: 3 })
    void acquire("first")
    void acquire("second", { cost: 3 })
    void acquire("third", { maxWaitMs: 1_500 })
    void acquire("fourth", { maxWaitMs: 2_000 })
    await pass(999)
    expect(entries).toEqual([])
    // The first request is admitted, and the second request has to wait for another second.
    await pass(1)
    expect(entries).toEqual(["1000 first", "1000 third: refused"])
    await pass(SECOND, 100)
    expect(entries.slice(2).sort()).toEqual(["2000 fourth: refused", "2000 second"])
  })

  it("refuses a request that has to wait itself, but not because a request ahead of it waits in another queue", async () => {
    const rules: Rule[] = [
      { name: "client", limit: 1, window: "1 minute", algorithm: "fixed-window", field: "ip" },
      { name: "path", limit: 1, window: "1 minute", algorithm: "fixed-window", field: "query:p" },
    ]
    const { limiter, clock } = limiterWith({ rules })
    const { acquire, pass, entries } = diary(limiter, clock)
    const asks = (ip: RequestFacts, p: string) => ({ ...ip, query: { p } })
    void acquire("one", {}, asks(ALICE, "x"))
    void acquire("sleeps in alice's", {}, asks(ALICE, "y"))
    void acquire("behind it in y", {}, asks(BOB, "y"))
    void acquire("behind that in bob's", { maxWaitMs: 5_000 }, asks(BOB, "z"))
    await pass(0)
    expect(entries).toEqual(["0 one", "0 behind it in y", "0 behind that in bob's: refused"])
  })
})

describe("maxWaitMs of a request that waits behind others", () => {
  it("admits the request if its turn comes exactly when the wait ends", async () => {
    const { limiter, clock } = limiterWith(THREE)
    const { acquire, pass, entries } = diary(limiter, clock)
    await limiter.decide(ALICE, { cost: 3 })
    void acquire("first")
    void acquire("just", { maxWaitMs: 1_000 })
    await pass(SECOND, 500)
    expect(entries).toEqual(["1000 first", "1000 just"])
  })
})

describe("maxWaiting", () => {
  it("refuses a request if maxWaiting requests wait for one of its counters, with the wait of the first", async () => {
    const { limiter, clock } = limiterWith(THREE)
    const { acquire, pass, entries } = diary(limiter, clock)
    await limiter.decide(ALICE, { cost: 3 })
    const how = { maxWaiting: 2 }
    void acquire("a", how)
    void acquire("b", how)
    await pass(250, 250)
    const decision = await refusalOf(limiter.acquire(ALICE, how))
    expect(decision).toMatchObject({ refusal: "quota", retryAfterMs: 750, policy: "three" })
    expect((await limiter.acquire(BOB, how)).allowed).toBe(true)
    await pass(750, 250)
    expect(entries).toEqual(["1000 a", "1000 b"])
  })

  it("is 1,000 by default", async () => {
    const { limiter, clock } = limiterWith(THREE)
    const { acquire, pass, entries } = diary(limiter, clock)
    await limiter.decide(ALICE, { cost: 3 })
    for (let i = 0; i < 1_001; i++) void acquire(`${i}`)
    await pass(0)
    expect(entries).toEqual(["0 1000: refused"])
  })
})

describe("a signal", () => {
  it("takes nothing if it is already aborted", async () => {
    const { limiter, calls } = limiterWith(THREE)
    const signal = AbortSignal.abort(new Error("gone"))
    await expect(limiter.acquire(ALICE, { signal })).rejects.toThrow("gone")
    expect(calls.takes).toBe(0)
  })

  it("ends the wait with its reason, and the requests behind proceed", async () => {
    const { limiter, clock } = limiterWith(THREE)
    const { acquire, pass, entries } = diary(limiter, clock)
    const [first, middle] = [new AbortController(), new AbortController()]
    await limiter.decide(ALICE, { cost: 2 })
    void acquire("first", { cost: 3, signal: first.signal })
    void acquire("second")
    void acquire("middle", { signal: middle.signal })
    void acquire("last", { cost: 3 })
    await pass(100, 100)
    middle.abort(new Error("had enough"))
    await pass(100, 100)
    expect(entries).toEqual(["100 middle: had enough"])
    first.abort(new Error("me too"))
    await pass(0)
    // The second request would have fit at any time.
    expect(entries.slice(1).sort()).toEqual(["200 first: me too", "200 second"])
    await pass(800, 100)
    expect(entries.slice(3)).toEqual(["1000 last"])
  })

  it("shared by many requests causes only one store call when it aborts, for the request that still waits", async () => {
    const { limiter, clock, calls } = limiterWith(THREE)
    const { acquire, pass, entries } = diary(limiter, clock)
    const aborting = new AbortController()
    await limiter.decide(ALICE, { cost: 3 })
    for (let i = 0; i < 500; i++) void acquire(`${i}`, { signal: aborting.signal })
    void acquire("stays")
    await pass(0)
    const asked = calls.takes
    aborting.abort(new Error("all"))
    await pass(0)
    expect([entries.length, calls.takes - asked]).toEqual([500, 1])
    await pass(SECOND, 500)
    expect(entries.slice(500)).toEqual(["1000 stays"])
  })

  it("has no effect after the request was admitted", async () => {
    const { limiter, clock, calls } = limiterWith(THREE)
    const aborting = new AbortController()
    const { acquire, pass, entries } = diary(limiter, clock)
    await limiter.decide(ALICE, { cost: 3 })
    void acquire("a", { signal: aborting.signal })
    await pass(SECOND, 500)
    aborting.abort(new Error("late"))
    await pass(0)
    expect([entries, calls.returned]).toEqual([["1000 a"], 0])
  })

  it("refunds a grant that was pending when it aborts", async () => {
    const clock = manualClock()
    const inner = memoryStore({ clock })
    const { store, calls } = countingStore(inner)
    let answer = () => {}
    const slow: Store = {
      ...store,
      take: (checks) =>
        new Promise((resolve) => {
          answer = () => resolve(store.take(checks))
        }),
    }
    const limiter = createLimiter({ ...THREE, clock, store: slow, storeTimeoutMs: 60_000, logger: QUIET })
    const aborting = new AbortController()
    const acquiring = limiter.acquire(ALICE, { cost: 2, signal: aborting.signal })
    await nextTurn()
    aborting.abort(new Error("gone"))
    await expect(acquiring).rejects.toThrow("gone")
    answer()
    await nextTurn()
    expect([calls.takes, calls.returned]).toEqual([1, 2])
    expect((await limiter.peek(ALICE, { cost: 0 })).remaining).toBe(3)
  })
})

describe("a leaky bucket's delay", () => {
  it("applies to each request in turn", async () => {
    const { limiter, clock, calls } = limiterWith(LEAKY)
    const { acquire, pass, entries } = diary(limiter, clock)
    for (const name of ["a", "b", "c", "d", "e", "f", "g"]) void acquire(name)
    await pass(700, 50)
    // Five fit in. The sixth request is admitted when the first request has leaked out of the bucket, and so on.
    expect(entries).toEqual(["0 a", "100 b", "200 c", "300 d", "400 e", "500 f", "600 g"])
    expect(calls.takes).toBe(7 + 2)
  })

  it("ends when the signal aborts, and the other requests keep their turns", async () => {
    const { limiter, clock, calls } = limiterWith(LEAKY)
    const { acquire, pass, entries } = diary(limiter, clock)
    const leaving = new Map([..."bde"].map((name) => [name, new AbortController()]))
    for (const name of "abcd") void acquire(name, { signal: leaving.get(name)?.signal })
    await pass(50, 50)
    leaving.get("b")?.abort(new Error("gone"))
    await pass(0)
    // No other request gets the turn of b, so e has a turn after d.
    void acquire("e", { signal: leaving.get("e")?.signal })
    leaving.get("d")?.abort(new Error("gone"))
    await pass(0)
    expect(calls.returned).toBe(0)
    leaving.get("e")?.abort(new Error("gone"))
    await pass(0)
    // Now c has the last turn, so the units of d and e were refunded.
    expect(calls.returned).toBe(2)
    void acquire("f")
    await pass(400, 50)
    expect(entries.slice(4)).toEqual(["200 c", "300 f"])
    expect([entries[0], calls.returned]).toEqual(["0 a", 2])
  })

  it("disappears completely when all requests leave, in any order", async () => {
    for (const order of ["bcde", "edcb", "cebd"]) {
      const { limiter, clock, calls } = limiterWith(LEAKY)
      const { acquire, pass } = diary(limiter, clock)
      const leaving = new Map([...order].map((name) => [name, new AbortController()]))
      for (const name of "abcde") void acquire(name, { signal: leaving.get(name)?.signal })
      await pass(0)
      for (const name of order) {
        leaving.get(name)?.abort(new Error("gone"))
        await pass(0)
      }
      expect([order, calls.returned]).toEqual([order, 4])
      expect((await limiter.peek(ALICE, { cost: 0 })).remaining).toBe(4)
    }
  })

  it("applies to a new request that arrives in the event loop turn in which the last delayed request leaves", async () => {
    const { limiter, clock } = limiterWith(LEAKY)
    const { acquire, pass, entries } = diary(limiter, clock)
    const leaving = new AbortController()
    void acquire("a")
    void acquire("b", { signal: leaving.signal })
    await pass(0)
    leaving.abort(new Error("gone"))
    void acquire("c")
    void acquire("d")
    await pass(300, 50)
    expect(entries).toEqual(["0 a", "0 b: gone", "100 c", "200 d"])
  })

  it("ends when the request leaves, and the units of other rules are also refunded", async () => {
    const daily = {
      name: "daily",
      field: "service",
      limit: 100,
      window: "1 day",
      algorithm: "fixed-window",
    } as const
    const { limiter, clock } = limiterWith({ rules: [{ ...LEAKY, field: "service" }, daily] })
    const { acquire, pass } = diary(limiter, clock)
    const leaving = new AbortController()
    void acquire("a")
    void acquire("b", { signal: leaving.signal })
    void acquire("c")
    await pass(0)
    leaving.abort(new Error("gone"))
    await pass(0)
    const { checks } = await limiter.peek(ALICE, { cost: 0 })
    expect(checks.map(({ remaining }) => remaining)).toEqual([2, 98])
    await limiter.close()
  })

  it("beyond maxWaitMs causes an immediate refusal with the time until a retry can succeed, and takes nothing", async () => {
    const { limiter, clock } = limiterWith(LEAKY)
    const { acquire, pass } = diary(limiter, clock)
    for (const name of ["a", "b", "c"]) void acquire(name)
    await pass(0)
    const decision = await refusalOf(limiter.acquire(ALICE, { maxWaitMs: 250 }))
    expect(decision).toMatchObject({
      allowed: false,
      refusal: "quota",
      retryAfterMs: 50,
      cost: 0,
      delayMs: 0,
    })
    expect((await limiter.peek(ALICE, { cost: 0 })).remaining).toBe(2)
    clock.advance(49)
    await refusalOf(limiter.acquire(ALICE, { maxWaitMs: 250 }))
    clock.advance(1)
    const acquiring = limiter.acquire(ALICE, { maxWaitMs: 250 })
    await pass(250, 50)
    expect(await acquiring).toMatchObject({ allowed: true, delayMs: 250 })
  })
})

describe("the refusal for a delay beyond maxWaitMs", () => {
  it("contains the state without the refunded units, for every rule", async () => {
    const rules: Rule[] = [
      { ...LEAKY, field: "ip", rejectionMessage: "slower" },
      { name: "daily", field: "service", limit: 100, window: "1 day", algorithm: "sliding-log" },
      { name: "tried", field: "service", limit: 2, window: "1 day", algorithm: "fixed-window", shadow: true },
      { name: "listed", limit: 9, window: "1 day", field: "ip", deny: ["192.0.2.1"], shadow: true },
    ]
    const { limiter } = limiterWith({ rules })
    void limiter.acquire(ALICE, { cost: 2 })
    const { checks, ...refused } = await refusalOf(limiter.acquire(ALICE, { cost: 2, maxWaitMs: 150 }))
    expect(refused).toMatchObject({
      allowed: false,
      policy: "leaky",
      cost: 0,
      remaining: 0,
      retryAfterMs: 50,
      resetAfterMs: 200,
      rejectionMessage: "slower",
      shadowed: ["tried", "listed"],
    })
    const { checks: seen } = await limiter.peek(ALICE, { cost: 2 })
    const different = { allowed: false, refusal: "quota", remaining: 0, retryAfterMs: 50, delayMs: 0 }
    expect(checks[0]).toEqual({
      ...seen[0],
      ...different,
      nextUnitAfterMs: 50,
      rejectionMessage: "slower",
    })
    expect(checks.slice(1)).toEqual(seen.slice(1))
    await limiter.close()
  })
})

describe("units that are returned", () => {
  it.each<[string, (limiter: Limiter, taken: Decision) => Promise<void>]>([
    ["by a refund", (limiter, taken) => limiter.refund(taken)],
    ["by a settlement", (limiter, taken) => limiter.settle(taken, 0)],
    ["by a reset", (limiter) => limiter.reset(ALICE)],
  ])("%s admit waiting requests immediately and in order", async (_how, refund) => {
    const { limiter, clock, calls } = limiterWith(THREE)
    const { acquire, pass, entries } = diary(limiter, clock)
    const taken = await limiter.decide(ALICE, { cost: 3 })
    void acquire("a", { cost: 2 })
    void acquire("b")
    void acquire("c", { cost: 2 })
    void acquire("d")
    await pass(100)
    await refund(limiter, taken)
    await pass(0)
    expect(entries).toEqual(["100 a", "100 b"])
    await pass(899)
    // There is one call for the first request, which is refused. Later there is one call for each request, and the
    // third request is refused.
    expect(calls.takes).toBe(1 + 1 + 3)
    await pass(1)
    expect(entries.slice(2)).toEqual(["1000 c", "1000 d"])
    expect(calls.takes).toBe(5 + 2)
  })

  it("make the first request call the store once if they are too few, and wait as long as its refusal", async () => {
    const { limiter, clock, calls } = limiterWith(THREE)
    const { acquire, pass, entries } = diary(limiter, clock)
    const [one, two] = [await limiter.decide(ALICE), await limiter.decide(ALICE, { cost: 2 })]
    void acquire("dear", { cost: 3 })
    void acquire("cheap")
    await pass(100)
    await limiter.refund(one)
    await pass(0)
    expect([entries, calls.takes]).toEqual([[], 2 + 2])
    // The second refund has no effect, and a charge returns no units.
    await limiter.refund(one)
    await limiter.settle(two, 3)
    await pass(899)
    expect(calls.takes).toBe(4)
    await pass(1)
    expect([entries, calls.takes]).toEqual([["1000 dear"], 4 + 2])
  })

  it("do not wake requests that wait for other counters", async () => {
    const { limiter, clock, calls } = limiterWith(THREE)
    const { acquire, pass } = diary(limiter, clock)
    const bobs = await limiter.decide(BOB)
    void acquire("all", { cost: 3 })
    void acquire("waits")
    await pass(0)
    const { takes } = calls
    await limiter.refund(bobs)
    await limiter.reset(BOB)
    await pass(0)
    expect(calls.takes).toBe(takes)
    await limiter.close()
  })

  it("include the units of a block that is lifted", async () => {
    const penalty = { refusals: 1, for: "1 hour" } as const
    const { limiter, clock } = limiterWith({ ...THREE, penalty })
    const { acquire, pass, entries } = diary(limiter, clock)
    await limiter.decide(ALICE, { cost: 3 })
    await limiter.decide(ALICE)
    void acquire("blocked")
    await pass(2 * SECOND, 500)
    expect(entries).toEqual([])
    await limiter.reset(ALICE)
    await pass(0)
    expect(entries).toEqual(["2000 blocked"])
  })

  it("by a request that stopped waiting admit others that wait for them", async () => {
    const rules: Rule[] = [
      { name: "leaky", limit: 10, window: "1 second", algorithm: "leaky-bucket", field: "query:p" },
      { name: "all", field: "service", limit: 2, window: "1 minute", algorithm: "fixed-window" },
    ]
    const { limiter, clock } = limiterWith({ rules })
    const { acquire, pass, entries } = diary(limiter, clock)
    const leaving = new AbortController()
    const by = (p: string) => ({ ...ALICE, query: { p } })
    void acquire("a", {}, by("x"))
    void acquire("is held", { signal: leaving.signal }, by("x"))
    void acquire("waits", {}, by("y"))
    await pass(50)
    leaving.abort(new Error("gone"))
    await pass(0)
    expect(entries.slice(1).sort()).toEqual(["50 is held: gone", "50 waits"])
  })
})

describe("close", () => {
  it("rejects all waiting requests immediately, and refunds the units of delayed ones", async () => {
    const clock = manualClock()
    const { store, calls } = countingStore(memoryStore({ clock }))
    const limiter = createLimiter({ ...LEAKY, burst: 3, clock, store, logger: QUIET })
    const who = ["goes on", "is held", "is held", "sleeps", "waits"]
    const acquiring = who.map(() => limiter.acquire(ALICE))
    await acquiring[0]
    await nextTurn()
    const rejected = Promise.all(acquiring.slice(1).map((each) => expect(each).rejects.toThrow(ClosedError)))
    await limiter.close()
    await rejected
    expect(calls.returned).toBe(2)
    await expect(limiter.acquire(ALICE)).rejects.toThrow(ClosedError)
  })

  it("refunds units that a store grants after the limiter was closed", async () => {
    const clock = manualClock()
    const { store, calls } = countingStore(memoryStore({ clock }))
    const pending: (() => void)[] = []
    const later: Store = {
      ...store,
      take: (checks) =>
        new Promise((resolve) => {
          const answers = store.take(checks)
          pending.push(() => resolve(answers))
        }),
    }
    const limiter = createLimiter({ ...THREE, clock, store: later, storeTimeoutMs: 60_000, logger: QUIET })
    const acquiring = limiter.acquire(ALICE, { cost: 2 })
    const rejected = expect(acquiring).rejects.toThrow(ClosedError)
    await limiter.close()
    await rejected
    expect([calls.takes, calls.returned]).toEqual([1, 0])
    for (const answer of pending) answer()
    await nextTurn()
    expect(calls.returned).toBe(2)
  })
})
