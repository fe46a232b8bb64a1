import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises"
import { createLimiter, type Limiter } from "@sluice/core"
import type { RateRule } from "@sluice/core/adapters"
import { manualClock } from "@sluice/core/testing"
import { redisStore } from "@sluice/redis"
import { afterAll, describe, expect, it } from "vitest"
import { KINDS_OF_RULE } from "../../packages/core/src/limiter/rule-set/testing/kinds-of-rule.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { everyNth } from "../test-length.ts"
import { keysWithoutTtl } from "./counted.ts"

// These tests cover partial grants, settling and waiting on counters in Redis.

const MINUTE = 60_000
const QUIET = { warn() {}, error() {} }
const ALICE = { remoteAddress: "192.0.2.1" }

const { server, client } = await redisForTests()
let made = 0
afterAll(async () => {
  expect(await keysWithoutTtl(server)).toEqual([])
})

/** Creates limiters of one service on one clock. For Redis, they are like separate processes. */
function instances(rule: Partial<RateRule>, count = 1) {
  const clock = manualClock()
  const prefix = `waiting${made++}:`
  const limiters = Array.from({ length: count }, () =>
    createLimiter({
      limit: 100,
      window: "1 minute",
      ...rule,
      clock,
      logger: QUIET,
      service: "waiting",
      store: redisStore({ client, clock, prefix, timeoutMs: 20_000 }),
      storeTimeoutMs: 20_000,
    }),
  )
  return { clock, limiters, limiter: limiters[0] as Limiter }
}

/**
 * Waits until each waiter whose units another instance took was refused and waits again. Redis replies to a
 * connection in order, so the reply to a ping arrives after all earlier replies. Several pings are needed, because a
 * refusal may cause another request.
 */
async function allRefusalsHeard(): Promise<void> {
  for (let questions = 0; questions < 20; questions++) {
    await nextTurn()
    await client.ping()
  }
}

async function remainingOf(limiter: Limiter): Promise<number> {
  return (await limiter.peek(ALICE, { cost: 0 })).remaining
}

// The store contract and the tests of the limiter already cover each kind, so these tests only add concurrency.
describe.each(everyNth(4, KINDS_OF_RULE))("a %s rule in Redis", (_name, kind) => {
  it("grants concurrent requests no more units than remain", async () => {
    const { limiters } = instances(kind, 4)
    const decisions = await Promise.all(limiters.map((limiter) => limiter.takeUpTo(ALICE, 40)))
    const granted = decisions.reduce((sum, { cost }) => sum + cost, 0)
    const left = await remainingOf(limiters[0] as Limiter)
    expect(granted + left).toBe(100)
    // Two of the four requests certainly take 40 units each. The other two take the remaining units, or a single
    // unit.
    expect(granted).toBeGreaterThan(80)
  })
})

describe("requests that wait for a counter in Redis", () => {
  it("are admitted up to the full limit in each window, in order on each of three instances", async () => {
    const { limiters, clock } = instances({ limit: 30, algorithm: "fixed-window" }, 3)
    const startMs = clock.now()
    const entries: { readonly instance: number; readonly i: number; readonly atMs: number }[] = []
    let over = 0
    for (let i = 0; i < 40; i++) {
      limiters.forEach((limiter, instance) => {
        void limiter.acquire(ALICE).then(() => {
          entries.push({ instance, i, atMs: clock.now() - startMs })
          over++
        })
      })
    }
    for (let windows = 0; windows < 4; windows++) {
      const wanted = 30 * (windows + 1)
      while (over < wanted) await nextTurn()
      await allRefusalsHeard()
      expect(entries).toHaveLength(wanted)
      clock.advance(MINUTE)
    }
    for (const instance of limiters.keys()) {
      const own = entries.filter((entry) => entry.instance === instance)
      expect(own.map(({ i }) => i)).toEqual(Array.from({ length: 40 }, (_, i) => i))
    }
    expect([...new Set(entries.map(({ atMs }) => atMs))]).toEqual([0, MINUTE, 2 * MINUTE, 3 * MINUTE])
  })
})

it("the works of several instances share the permits in Redis, and find the permits that others release", async () => {
  const prefix = `waiting${made++}:`
  const limiters = Array.from({ length: 3 }, () =>
    createLimiter({
      rules: [{ name: "in-flight", field: "ip", concurrent: 3 }],
      ...{ logger: QUIET, service: "waiting", storeTimeoutMs: 20_000 },
      store: redisStore({ client, prefix, timeoutMs: 20_000 }),
    }),
  )
  let running = 0
  let most = 0
  const work = async () => {
    running++
    most = Math.max(most, running)
    await sleep(5)
    running--
  }
  const runs = limiters.flatMap((limiter) => Array.from({ length: 20 }, () => limiter.run(ALICE, work)))
  await Promise.all(runs)
  expect(most).toBe(3)
  for (const limiter of limiters) {
    expect(await remainingOf(limiter)).toBe(3)
    expect(limiter.status).toMatchObject({ inFlight: 0, waiting: 0 })
    await limiter.close()
  }
})
