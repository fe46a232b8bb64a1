import { Redis } from "ioredis"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import type { Decision } from "../../packages/core/src/decision/decision.ts"
import { type ManualClock, manualClock } from "../../packages/core/src/ground/manual-clock.ts"
import { createLimiter } from "../../packages/core/src/limiter/create-limiter.ts"
import type { Limiter } from "../../packages/core/src/limiter/interface/limiter.ts"
import type { LimiterOptions } from "../../packages/core/src/limiter/options/options.ts"
import type { RequestFacts } from "../../packages/core/src/request/request.ts"
import { redisStore } from "../../packages/redis/src/redis-store.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { keysWithoutTtl } from "./counted.ts"

const MINUTE = 60_000
const ALICE: RequestFacts = { remoteAddress: "192.0.2.1" }
const BOB: RequestFacts = { remoteAddress: "192.0.2.2" }
const DENY_CACHE_MS = 10_000
const QUIET = { warn() {}, error() {} }

const { server } = await redisForTests()
let clients: readonly Redis[]
let made = 0
const opened: (() => Promise<void>)[] = []
beforeAll(async () => {
  clients = [1, 2, 3].map(() => new Redis(server.port, server.host))
})
afterEach(async () => {
  for (const close of opened.splice(0)) await close()
})
afterAll(async () => {
  expect(await keysWithoutTtl(server)).toEqual([])
  for (const client of clients) client.disconnect()
})

type Three = readonly [Limiter<RequestFacts>, Limiter<RequestFacts>, Limiter<RequestFacts>]

/** Creates three instances of a service on one Redis. Each instance has its own client and store. */
function three(options: LimiterOptions<RequestFacts>): { clock: ManualClock; limiters: Three } {
  const clock = manualClock()
  const prefix = `penalties${made++}:`
  const limiters = clients.map((client) => {
    const store = redisStore({ client, prefix, clock, denyCacheMs: DENY_CACHE_MS, timeoutMs: 10_000 })
    const limiter = createLimiter<RequestFacts>({
      store,
      service: "checkout",
      clock,
      storeTimeoutMs: 10_000,
      logger: QUIET,
      ...options,
    })
    opened.push(async () => {
      await limiter.close()
      await store.close()
    })
    return limiter
  })
  return { clock, limiters: limiters as unknown as Three }
}

const BLOCKING: LimiterOptions<RequestFacts> = {
  limit: 2,
  window: "1 minute",
  algorithm: "fixed-window",
  penalty: { refusals: 3, within: "10 minutes", for: "1 hour" },
}

function told({ allowed, refusal, retryAfterMs }: Decision) {
  return [allowed, refusal, retryAfterMs]
}

describe("a penalty on a Redis that three instances share", () => {
  it("counts the refusals of all instances, and blocks the client on all of them", async () => {
    const { clock, limiters } = three(BLOCKING)
    const answers = []
    for (let i = 0; i < 5; i++) answers.push(told(await (limiters[i % 3] as Three[0]).decide(ALICE)))
    expect(answers).toEqual([
      [true, undefined, 0],
      [true, undefined, 0],
      [false, "quota", MINUTE],
      [false, "quota", MINUTE],
      [false, "penalty", 60 * MINUTE],
    ])
    clock.advance(2 * MINUTE)
    for (const limiter of limiters) {
      expect(told(await limiter.decide(ALICE))).toEqual([false, "penalty", 58 * MINUTE])
      expect(told(await limiter.peek(ALICE))).toEqual([false, "penalty", 58 * MINUTE])
      expect((await limiter.decide(BOB, { cost: 0 })).allowed).toBe(true)
    }
    clock.advance(58 * MINUTE - 1)
    for (const limiter of limiters) expect((await limiter.decide(ALICE)).retryAfterMs).toBe(1)
    clock.advance(1)
    expect((await limiters[1].decide(ALICE)).allowed).toBe(true)
  })

  it("starts after exactly the configured number of refusals, even if all refusals are concurrent", async () => {
    const { limiters } = three({ ...BLOCKING, penalty: { refusals: 50, for: "1 hour" } })
    const all = await Promise.all(
      Array.from({ length: 52 }, (_, i) => (limiters[i % 3] as Three[0]).decide(ALICE)),
    )
    const count = (refusal: string | undefined) => all.filter((one) => one.refusal === refusal).length
    expect([count(undefined), count("quota"), count("penalty")]).toEqual([2, 49, 1])
  })

  it("ends after a reset, immediately on that instance and on the others when their cached refusals expire", async () => {
    const { clock, limiters } = three(BLOCKING)
    const [first, second, third] = limiters
    for (let i = 0; i < 5; i++) await first.decide(ALICE)
    clock.advance(2 * MINUTE)
    expect((await second.decide(ALICE)).refusal).toBe("penalty")
    await first.reset(ALICE)
    expect((await first.decide(ALICE)).allowed).toBe(true)
    // This limiter has made no decision yet, so its cache is empty.
    expect((await third.decide(ALICE)).allowed).toBe(true)
    clock.advance(DENY_CACHE_MS - 1)
    expect((await second.decide(ALICE)).refusal).toBe("penalty")
    clock.advance(1)
    expect(told(await second.decide(ALICE))).toMatchObject([false, "quota", expect.any(Number)])
  })
})

describe("a client that one instance blocks", () => {
  it("is refused by all instances within a second, until it is unblocked", async () => {
    const { clock, limiters } = three({ limit: 5, window: "1 minute", algorithm: "fixed-window" })
    const [one, two, three_] = limiters
    for (const limiter of limiters) await limiter.decide(BOB)
    await one.block(ALICE, { for: "1 hour" })
    expect(told(await one.decide(ALICE))).toEqual([false, "blocked", 60 * MINUTE])
    clock.advance(1_000)
    for (const limiter of [two, three_]) {
      await limiter.decide(BOB)
      expect((await limiter.peek(ALICE, { rules: ["ip-1m"] })).refusal).toBe("blocked")
      expect(told(await limiter.decide(ALICE))).toEqual([false, "blocked", 60 * MINUTE - 1_000])
    }
    clock.advance(60 * MINUTE - 1_001)
    expect(told(await three_.decide(ALICE))).toEqual([false, "blocked", 1])
    await two.unblock(ALICE)
    expect(told(await three_.decide(ALICE))).toEqual([true, undefined, 0])
  })

  it("receives the rest of the block as its wait, even if a refusal with a shorter wait is cached", async () => {
    const { clock, limiters } = three({ limit: 1, window: "1 minute", algorithm: "fixed-window" })
    const [one, two] = limiters
    await two.decide(ALICE)
    expect((await two.decide(ALICE)).refusal).toBe("quota")
    await one.block(ALICE, { for: "1 hour" })
    clock.advance(1_000)
    await two.decide(BOB)
    await two.peek(BOB)
    expect(told(await two.decide(ALICE))).toEqual([false, "blocked", 60 * MINUTE - 1_000])
  })
})
