import { setImmediate as nextTurn } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import { RateLimitExceededError } from "../../decision/decision.ts"
import { manualClock } from "../../ground/manual-clock.ts"
import { createLimiter } from "../../limiter/create-limiter.ts"
import type { AcquireOptions } from "../../limiter/interface/limiter.ts"
import type { LimiterOptions } from "../../limiter/options/options.ts"
import type { RequestFacts } from "../../request/request.ts"
import type { Rule } from "../../rules/rule.ts"
import { memoryStore } from "../../stores/memory/memory-store.ts"
import type { Store } from "../../stores/store.ts"
import { methodsOf } from "../../stores/testing/methods-of.ts"
import { createGuard } from "./create-guard.ts"
import type { Outcome } from "./mount-outcome.ts"

const QUIET = { warn() {}, error() {} }
const SECOND = 1_000
const HOUR = 3_600_000
const ALICE: RequestFacts = { remoteAddress: "192.0.2.1", method: "POST" }
const BOB: RequestFacts = { remoteAddress: "192.0.2.2", method: "POST" }

/** Creates a clock, a store that counts its calls, and spare capacity that the test controls. */
function setting() {
  const clock = manualClock()
  const inner = memoryStore({ clock })
  const calls = { asked: 0 }
  const store: Store = {
    ...methodsOf(inner),
    take(checks) {
      calls.asked++
      return inner.take(checks)
    },
    read(checks) {
      calls.asked++
      return inner.read(checks)
    },
  }
  const capacity = { isSpare: true }
  const throttle = { kind: "elastic", signal: () => capacity.isSpare } as const
  const pass = async (ms: number, stepMs: number) => {
    await nextTurn()
    for (let passed = 0; passed < ms; passed += stepMs) {
      clock.advance(stepMs)
      await nextTurn()
    }
  }
  return { clock, store, calls, capacity, throttle, pass }
}

/** Records when each waiter of an elastic rule is admitted or refused, in milliseconds from the start. */
function acquiring(rule: Partial<Rule<RequestFacts>>, ceiling: number) {
  const { throttle, ...rest } = setting()
  const { clock, store } = rest
  const options = { ...rule, throttle: { ...throttle, ceiling }, name: "e", clock, store, logger: QUIET }
  const limiter = createLimiter<RequestFacts>(options as LimiterOptions<RequestFacts>)
  const startMs = clock.now()
  const entries: string[] = []
  const acquire = (name: string, how: AcquireOptions = {}) => {
    const write = (what: string) => void entries.push(`${clock.now() - startMs} ${name}${what}`)
    limiter.acquire(ALICE, how).then(
      ({ overLimit }) => write(overLimit ? " over" : ""),
      (error: unknown) => write(error instanceof RateLimitExceededError ? ": refused" : `: ${error}`),
    )
  }
  return { ...rest, limiter, entries, acquire }
}

describe("a request that waits under an elastic rule", () => {
  const TEN = { limit: 10, window: SECOND, algorithm: "fixed-window" } as const
  const TWO_AN_HOUR = { limit: 2, window: HOUR, algorithm: "fixed-window" } as const

  it("is admitted only within the limit if the spare capacity has gone since its arrival", async () => {
    const { limiter, acquire, entries, capacity, pass } = acquiring(TEN, 100)
    await limiter.decide(ALICE, { cost: 100 })
    for (let i = 0; i < 100; i++) acquire("w")
    await nextTurn()
    capacity.isSpare = false
    await pass(3 * SECOND, 250)
    expect(entries).toEqual([1_000, 2_000, 3_000].flatMap((ms) => Array(10).fill(`${ms} w`)))
    capacity.isSpare = true
    await pass(SECOND, 250)
    expect(entries.slice(30)).toEqual([...Array(10).fill("4000 w"), ...Array(60).fill("4000 w over")])
  })

  it("is admitted above the limit at most a second after capacity is available again", async () => {
    const { limiter, acquire, entries, capacity, pass } = acquiring(TWO_AN_HOUR, 4)
    capacity.isSpare = false
    await limiter.decide(ALICE, { cost: 2 })
    for (const name of ["a", "b", "c"]) acquire(name)
    await pass(5 * SECOND, 250)
    expect(entries).toEqual([])
    capacity.isSpare = true
    await pass(SECOND, 250)
    expect(entries).toEqual(["6000 a over", "6000 b over"])
    await pass(HOUR - 6 * SECOND, 60 * SECOND - 250)
    expect(entries.slice(2).map((entry) => entry.slice(-2))).toEqual([" c"])
  })

  it("does not block a later request that only needs capacity, while it waits for another rule", async () => {
    const { clock, store, capacity, throttle, pass } = setting()
    const limiter = createLimiter<RequestFacts>({
      service: "shop",
      rules: [
        { ...TWO_AN_HOUR, name: "all", field: "service", throttle: { ...throttle, ceiling: 50 } },
        { limit: 2, window: 30 * SECOND, algorithm: "fixed-window", name: "each", field: "ip" },
      ],
      clock,
      store,
      logger: QUIET,
    })
    const startMs = clock.now()
    const entries: string[] = []
    const acquire = (name: string, request: RequestFacts) =>
      void limiter.acquire(request, { maxWaitMs: 40 * SECOND }).then(() => {
        entries.push(`${clock.now() - startMs} ${name}`)
      })
    await limiter.decide(ALICE, { cost: 2 })
    capacity.isSpare = false
    acquire("alice", ALICE)
    await nextTurn()
    capacity.isSpare = true
    acquire("bob", BOB)
    await pass(30 * SECOND, SECOND)
    expect(entries).toEqual(["0 bob", "30000 alice"])
  })

  it("is admitted with a cost above the limit when capacity is available again", async () => {
    const { acquire, entries, capacity, pass } = acquiring(TWO_AN_HOUR, 4)
    capacity.isSpare = false
    acquire("expensive", { cost: 4 })
    await pass(2 * SECOND, 250)
    capacity.isSpare = true
    await pass(SECOND, 250)
    expect(entries).toEqual(["3000 expensive over"])
  })

  it("causes no early store call if capacity would not help, at the ceiling or during a block", async () => {
    const ceiling = acquiring(TWO_AN_HOUR, 4)
    await ceiling.limiter.decide(ALICE, { cost: 4 })
    ceiling.acquire("w")
    const reached = acquiring(TWO_AN_HOUR, 4)
    await reached.limiter.decide(ALICE, { cost: 3 })
    reached.capacity.isSpare = false
    reached.acquire("w", { cost: 2 })
    await nextTurn()
    reached.capacity.isSpare = true
    await reached.limiter.decide(ALICE)
    const blocked = acquiring({ ...TWO_AN_HOUR, penalty: { refusals: 1, for: "1 hour" } }, 4)
    blocked.capacity.isSpare = false
    for (let i = 0; i < 4; i++) await blocked.limiter.decide(ALICE)
    blocked.acquire("w")
    for (const { calls, pass, entries } of [ceiling, reached, blocked]) {
      await pass(SECOND, 500)
      const before = calls.asked
      await pass(30 * SECOND, 500)
      expect([calls.asked, entries]).toEqual([before, []])
    }
  })

  describe("at the ceiling", () => {
    /** A unit that is taken at a full second can be taken again 60 seconds later. */
    const LOG = { limit: 2, window: 60 * SECOND - 1, algorithm: "sliding-log" } as const

    /**
     * Takes units at 0, 10, 20 and 30 seconds. A unit below the ceiling is free again at 60 seconds, and a unit below
     * the limit at 80 seconds.
     */
    async function atCeiling() {
      const all = acquiring(LOG, 4)
      for (let i = 0; i < 4; i++) {
        if (i > 0) await all.pass(10 * SECOND, SECOND)
        await all.limiter.decide(ALICE)
      }
      all.acquire("first")
      all.acquire("second", { maxWaitMs: 45 * SECOND })
      all.acquire("impatient", { maxWaitMs: 29 * SECOND })
      const { asked } = all.calls
      await all.pass(29 * SECOND, SECOND)
      expect(all.calls.asked).toBe(asked)
      expect(all.entries).toEqual(["30000 impatient: refused"])
      return all
    }

    it("is admitted as soon as it fits below the ceiling, if there is spare capacity then", async () => {
      const { pass, entries, calls } = await atCeiling()
      const { asked } = calls
      await pass(20 * SECOND, SECOND)
      expect(entries.slice(1)).toEqual(["60000 first over", "70000 second over"])
      expect(calls.asked - asked).toBe(3)
    })

    it("is admitted when it fits below the limit, if there is no spare capacity", async () => {
      const { pass, entries, capacity } = await atCeiling()
      capacity.isSpare = false
      await pass(31 * SECOND, SECOND)
      expect(entries.slice(1)).toEqual(["75000 second: refused", "80000 first"])
    })
  })

  it("is refused when the next check for capacity would exceed its maximum wait", async () => {
    const { limiter, acquire, entries, capacity, pass } = acquiring(TWO_AN_HOUR, 4)
    capacity.isSpare = false
    await limiter.decide(ALICE, { cost: 2 })
    acquire("w", { maxWaitMs: 2_500 })
    await pass(4 * SECOND, 250)
    expect(entries).toEqual(["2000 w: refused"])
  })

  it("counts as a refusal for the penalty if the capacity has gone when it is refused", async () => {
    const penalty = { refusals: 1, within: HOUR, for: HOUR } as const
    const { limiter, clock, acquire, entries, capacity } = acquiring({ ...TEN, penalty }, 20)
    await limiter.decide(ALICE, { cost: 20 })
    acquire("w", { cost: 8, maxWaitMs: 1_500 })
    await nextTurn()
    capacity.isSpare = false
    clock.advance(SECOND)
    expect((await limiter.decide(ALICE, { cost: 5 })).allowed).toBe(true)
    await nextTurn()
    expect(entries).toEqual(["1000 w: refused"])
    // Five units are left, so without the block the request would be admitted.
    expect(await limiter.peek(ALICE)).toMatchObject({ allowed: false, refusal: "penalty" })
  })
})

describe("an elastic rule beside a queueing rule", () => {
  const QUEUE = {
    name: "queue",
    limit: 1,
    window: SECOND,
    algorithm: "fixed-window",
    field: "service",
    match: { methods: ["POST"] },
    throttle: { kind: "queue" },
  } as const

  async function holding(limit: number) {
    const { throttle, clock, store, capacity, pass } = setting()
    const elastic = { name: "elastic", limit, window: HOUR, algorithm: "fixed-window", field: "ip", throttle }
    const rules = [QUEUE, elastic] as Rule<object>[]
    const guard = createGuard<object>({ rules, clock, store, logger: QUIET })
    // In the event loop turn of its creation, a guard assumes that a request handler created it.
    await nextTurn()
    const check = (facts: RequestFacts = ALICE) => guard.check(facts, {})
    return { check, capacity, pass }
  }
  const told = async (outcome: Outcome | Promise<Outcome>) => {
    const { allowed, overLimit, policy } = (await outcome).decision
    return allowed ? (overLimit ? "over" : "admitted") : policy
  }

  it("refuses a delayed request that it would have admitted on arrival", async () => {
    const { check, capacity, pass } = await holding(1)
    expect(await told(check())).toBe("admitted")
    const held = check()
    expect(held).toBeInstanceOf(Promise)
    capacity.isSpare = false
    await pass(SECOND, 500)
    expect(await told(held)).toBe("elastic")
  })

  it("admits a delayed request that it would have refused on arrival", async () => {
    const { check, capacity, pass } = await holding(2)
    capacity.isSpare = false
    await told(check())
    const held = check()
    // A request that does not queue takes the last unit.
    expect(await told(check({ ...ALICE, method: "GET" }))).toBe("admitted")
    capacity.isSpare = true
    await pass(SECOND, 500)
    expect(await told(held)).toBe("over")
  })

  it("uses the current capacity, even for requests that wait behind other requests", async () => {
    const { check, capacity, pass } = await holding(1)
    await told(check(BOB))
    const first = check()
    capacity.isSpare = false
    expect(await told(check(BOB))).toBe("elastic")
    capacity.isSpare = true
    const over = check(BOB)
    await pass(SECOND, 500)
    expect(await told(first)).toBe("admitted")
    await pass(SECOND, 500)
    expect(await told(over)).toBe("over")
  })
})
