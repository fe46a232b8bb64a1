import { createLimiter } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import { afterAll, describe, expect, it } from "vitest"
import { manualClock } from "../../packages/core/src/ground/clock.ts"
import type { Policy } from "../../packages/core/src/ground/policy.ts"
import type { Check } from "../../packages/core/src/stores/store.ts"
import { takeEach } from "../../packages/core/src/stores/testing/take-each.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { callsBetween, callsOf, keysWithoutTtl } from "./counted.ts"

const MINUTE = 60_000
const HOUR = 60 * MINUTE

const { server, client } = await redisForTests()
afterAll(async () => {
  expect(await keysWithoutTtl(server)).toEqual([])
})

function policy(counter: string, limit: number, windowMs: number): Policy {
  return { name: counter, counter, algorithm: "sliding-window", limit, windowMs, align: "epoch" }
}

/** Returns a function that returns numbers from 0 up to `below`, the same in each run (Marsaglia's xorshift32). */
function dice(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % below
  }
}

/**
 * The units that were taken, by counter and window. It is a plain definition of the sliding window and of
 * all-or-nothing.
 */
class Book {
  readonly #taken = new Map<string, number>()

  take(checks: readonly Check[], nowMs: number): readonly Check[] {
    const refusing = checks.filter((check) => this.used(check, nowMs) + check.cost > check.policy.limit)
    if (refusing.length > 0) return refusing
    for (const check of checks) {
      const name = nameOf(check, windowAt(check, nowMs))
      this.#taken.set(name, (this.#taken.get(name) ?? 0) + check.cost)
    }
    return []
  }

  used(check: Check, nowMs: number): number {
    const { windowMs } = check.policy
    const present = windowAt(check, nowMs)
    const previous = this.#taken.get(nameOf(check, present - 1)) ?? 0
    const leftMs = windowMs - (nowMs - present * windowMs)
    return Math.floor((previous * leftMs) / windowMs) + this.current(check, nowMs)
  }

  current(check: Check, nowMs: number): number {
    return this.#taken.get(nameOf(check, windowAt(check, nowMs))) ?? 0
  }
}

function windowAt({ policy: { windowMs } }: Check, nowMs: number): number {
  return Math.floor(nowMs / windowMs)
}

function nameOf({ policy: { counter }, partition }: Check, window: number): string {
  return `${counter}/${partition}/${window}`
}

const STEPS = 20_000
const STEPS_A_CALL = 50

interface Stack {
  readonly name: string
  /** The longest time between two calls, in milliseconds. */
  readonly pauseMs: number
  checksOf(roll: (below: number) => number): readonly Check[]
}

const PER_HOUR = policy("per-hour", 500, HOUR)
const PER_MINUTE = policy("per-min.", 10, MINUTE)
const PER_SHARD = policy("shard-1m", 3, MINUTE)
const OVERALL = policy("all-hour", 100, HOUR)

const STACKS: readonly Stack[] = [
  {
    name: "500 an hour and 10 a minute for one user",
    pauseMs: 45_000,
    checksOf(roll) {
      const partition = `user-${roll(6)}`
      const cost = 1 + roll(4)
      return [PER_HOUR, PER_MINUTE].map((each) => ({ policy: each, partition, cost, shadow: false }))
    },
  },
  {
    name: "3 a minute for each shard and 100 an hour for all of them",
    pauseMs: 30 * MINUTE,
    checksOf: (roll) => [
      { policy: PER_SHARD, partition: `shard-${roll(8)}`, cost: 1, shadow: false },
      { policy: OVERALL, partition: "", cost: 1, shadow: false },
    ],
  },
]

describe.each(STACKS)("$name", ({ name, pauseMs, checksOf }) => {
  it("takes from all or none in 20,000 random steps, like a simple reference model", async () => {
    const clock = manualClock()
    const store = redisStore({ client, clock, prefix: `${name.length}:`, denyCacheMs: 0, timeoutMs: 20_000 })
    const book = new Book()
    const roll = dice(2_024)
    /** Refusals by the first limit alone, by the second alone, and by both. */
    const refusals = { first: 0, second: 0, both: 0 }
    let granted = 0
    for (let step = 0; step < STEPS; step += STEPS_A_CALL) {
      clock.advance(roll(pauseMs))
      const requests = Array.from({ length: STEPS_A_CALL }, () => checksOf(roll))
      const answers = await takeEach(store, requests)
      const wrong = requests.filter((checks, i) => {
        const refusing = book.take(checks, clock.now())
        if (refusing.length === 0) granted++
        else if (refusing.length === 2) refusals.both++
        else if (refusing[0] === checks[0]) refusals.first++
        else refusals.second++
        const answer = answers[i]
        return (
          answer?.granted !== (refusing.length === 0) ||
          checks.some((check, nth) => answer.checks[nth]?.state.current !== book.current(check, clock.now()))
        )
      })
      expect(wrong).toEqual([])
    }
    await store.close()
    // Enough of each for the steps to be meaningful.
    expect(Math.min(granted, refusals.first, refusals.second, refusals.both)).toBeGreaterThan(200)
  })
})

describe("a request of several limits", () => {
  const month = 30 * 24 * HOUR
  const rules = [
    { name: "hour", limit: 500, window: month, field: "user" },
    { name: "minute", limit: 10, window: month / 2, field: "user" },
    { name: "all", field: "service", limit: 1_000, window: month },
  ]

  /** Creates a limiter whose script the server has loaded, and a function that returns the Redis commands of a call. */
  async function open(denyCacheMs: number) {
    const store = redisStore({ client, prefix: `c${denyCacheMs}:`, denyCacheMs })
    const limiter = createLimiter<{ user: string }>({
      store,
      rules,
      service: "shop",
      fields: { user: ({ user }) => user },
      storeTimeoutMs: 20_000,
    })
    await limiter.decide({ user: "first" })
    const asked = async (user: string) => {
      const before = await callsOf(server)
      const decision = await limiter.decide({ user })
      expect(decision.degraded).toBe(false)
      return { allowed: decision.allowed, calls: callsBetween(before, await callsOf(server)) }
    }
    return { limiter, asked }
  }

  it("is one round trip, and takes nothing from any of them if it is refused", async () => {
    const { limiter, asked } = await open(0)
    const { allowed, calls } = await asked("ann")
    expect([allowed, calls.evalsha]).toEqual([true, 1])
    for (let i = 0; i < 9; i++) await limiter.decide({ user: "ann" })
    for (let i = 0; i < 20; i++) {
      const refused = await asked("ann")
      expect([refused.allowed, refused.calls.evalsha]).toEqual([false, 1])
    }
    const { checks } = await limiter.peek({ user: "ann" })
    expect(checks.map(({ policy: name, remaining }) => [name, remaining])).toEqual([
      ["hour", 490],
      ["minute", 0],
      ["all", 989],
    ])
    await limiter.close()
  })

  it("costs no command if its refusal is cached", async () => {
    const { limiter, asked } = await open(10_000)
    for (let i = 0; i < 11; i++) await limiter.decide({ user: "ann" })
    for (let i = 0; i < 20; i++) expect(await asked("ann")).toEqual({ allowed: false, calls: {} })
    expect((await asked("bob")).allowed).toBe(true)
    await limiter.close()
  })
})
