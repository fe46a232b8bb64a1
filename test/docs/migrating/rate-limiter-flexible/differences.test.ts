import { createLimiter } from "@sluice/core"
import { rateLimit } from "@sluice/express"
import { redisStore } from "@sluice/redis"
import express, { type RequestHandler } from "express"
import {
  RateLimiterMemory,
  RateLimiterRedis,
  RateLimiterRes,
  RateLimiterUnion,
  RLWrapperTimeouts,
} from "rate-limiter-flexible"
import { describe, expect, it } from "vitest"
import { until } from "../../../servers/until.ts"
import { type App, afterwards, answers, commonClock, serve, statuses } from "../pairs.ts"
import { closedClient, emptyRedis } from "../redis.ts"
import { admitted, as, quiet, times, twice } from "../requests.ts"
import { after, before, consuming } from "./app.ts"

const redis = await emptyRedis()
type Steps = Parameters<typeof statuses>[1]

const theirs = async (app: App | Promise<App>, steps: Steps, clock = commonClock()): Promise<number[]> =>
  statuses(await app, steps, clock)
const ours = async (options: Parameters<typeof after>[0], steps: Steps): Promise<number[]> => {
  const clock = commonClock()
  return statuses(await after({ logger: quiet, ...options })(clock), steps, clock)
}
const memory = (options: Parameters<typeof before>[0]): App | Promise<App> => before(options)(commonClock())
const minutely = { points: 1, duration: 60 }

describe("as the guide on limits states,", () => {
  it("the old library admits 19 requests within 200 ms under a limit of 10, and Sluice admits 10", async () => {
    const steps = ["/", 59_900, ...times(9, "/"), 200, ...times(10, "/")]
    const clock = commonClock()
    expect(admitted(await statuses(await before({ points: 10 })(clock), steps, clock)) - 1).toBe(19)
    expect(admitted(await ours({ limit: 10 }, steps)) - 1).toBe(10)
  })

  it("refused units use up the limit in the old library, but not in Sluice", async () => {
    const steps = ["/?cost=8", "/?cost=5", "/"]
    expect(await theirs(memory({ points: 10 }), steps)).toEqual([200, 429, 429])
    expect(await ours({ limit: 10 }, steps)).toEqual([200, 429, 200])
  })

  it("the quota returns in one step in the old library, and gradually in Sluice", async () => {
    const steps = [...times(10, "/"), 60_001, ...times(10, "/")]
    const clock = commonClock()
    expect(admitted(await theirs(before({ points: 10 })(clock), steps, clock))).toBe(20)
    expect(admitted(await ours({ limit: 10 }, steps))).toBeLessThan(15)
    const firstHit = { algorithm: "fixed-window", align: "first-hit" } as const
    expect(admitted(await ours({ limit: 10, ...firstHit }, steps))).toBe(20)
  })

  it("a block that is shorter than the window ends the wait early in the old library, but not in Sluice", async () => {
    const steps = [...times(5, "/"), 11_000, ...times(5, "/")]
    const clock = commonClock()
    const old = await theirs(before({ points: 4, duration: 60, blockDuration: 10 })(clock), steps, clock)
    expect(old).toEqual([200, 200, 200, 200, 429, 200, 200, 200, 200, 429])
    const penalty = { refusals: 1, for: "10 seconds" }
    expect(await ours({ limit: 4, penalty }, steps)).toEqual([
      200, 200, 200, 200, 429, 429, 429, 429, 429, 429,
    ])
  })

  it("the old library refunds a key at any time, and Sluice refunds a decision once", async () => {
    const old = new RateLimiterMemory({ points: 2, duration: 60 })
    for (let i = 0; i < 2; i++) await old.consume("somebody")
    for (let i = 0; i < 2; i++) await old.reward("somebody")
    expect((await old.get("somebody"))?.remainingPoints).toBe(2)
    const limiter = createLimiter({ limit: 2, window: "1 minute", clock: commonClock() })
    afterwards(() => limiter.close())
    const client = { remoteAddress: "192.0.2.7" }
    await limiter.decide(client)
    const decision = await limiter.decide(client)
    for (let i = 0; i < 2; i++) await limiter.refund(decision)
    expect((await limiter.peek(client)).remaining).toBe(1)
  })

  it("the old library sets a count in one call, and Sluice with `reset` and `decide`", async () => {
    const old = new RateLimiterMemory({ points: 5, duration: 60 })
    const limiter = createLimiter({ limit: 5, window: "1 minute", clock: commonClock() })
    afterwards(() => limiter.close())
    const client = { remoteAddress: "192.0.2.7" }
    await old.consume("somebody")
    await old.set("somebody", 3, 60)
    await limiter.decide(client)
    await limiter.reset(client)
    await limiter.decide(client, { cost: 3 })
    expect((await old.get("somebody"))?.remainingPoints).toBe(2)
    expect((await limiter.peek(client)).remaining).toBe(2)
  })

  it("the old library can block a client forever, and Sluice for at most 366 days", async () => {
    const clock = commonClock()
    const old = new RateLimiterMemory(minutely)
    await old.block("somebody", 0)
    clock.advance(400 * 86_400_000)
    await expect(old.consume("somebody")).rejects.toBeInstanceOf(RateLimiterRes)
    const limiter = createLimiter({ limit: 2, window: "52 weeks", clock })
    afterwards(() => limiter.close())
    const client = { remoteAddress: "192.0.2.7" }
    await expect(limiter.block(client, { for: "367 days" })).rejects.toThrow(/at most 366d/)
    await expect(limiter.block(client, { for: "366 days" })).resolves.toBeUndefined()
  })

  it("a union charges the hourly limit for requests that the per-minute limit refuses, but not in Sluice", async () => {
    const steps = [...times(4, "/"), 121_000, "/"]
    const clock = commonClock()
    const minute = new RateLimiterMemory({ keyPrefix: "minute", points: 2, duration: 60 })
    const hour = new RateLimiterMemory({ keyPrefix: "hour", points: 3, duration: 3600 })
    expect(await theirs(consuming(new RateLimiterUnion(minute, hour)), steps, clock)).toEqual([
      200, 200, 429, 429, 429,
    ])
    const rules = [
      { field: "user", limit: 2, window: "1 minute" },
      { field: "user", limit: 3, window: "1 hour" },
    ]
    expect(await ours({ rules }, steps)).toEqual([200, 200, 429, 429, 200])
  })

  it("a window below one second in Redis locks out a client forever in the old library, but not in Sluice", async () => {
    const half = new RateLimiterRedis({ points: 1, duration: 0.5, storeClient: redis.client })
    expect(await theirs(consuming(half), twice)).toEqual([200, 429])
    expect(await redis.client.pttl("rlflx:somebody")).toBe(-1)
    const store = redisStore({ client: redis.client })
    const now = { service: "half", window: "500 ms", store, storeTimeoutMs: 20_000, clock: undefined }
    const send = await serve(await after(now)(commonClock()))
    await send("/")
    await until("it is admitted again", async () => (await send("/")).status === 200)
  })

  it("the old memory limiter immediately forgets the counts of windows longer than 24.8 days", async () => {
    const month = 30 * 86_400
    const send = await serve(await before({ duration: month })(commonClock()))
    await send("/")
    await until("a second request is admitted", async () => (await send("/")).status === 200)
    expect(await ours({ window: month * 1000 }, twice)).toEqual([200, 429])
  })

  it("the old library ignores a wrong option, and Sluice throws an error that names Sluice's option", async () => {
    const misspelt = { ...minutely, blockduration: 600 } as typeof minutely
    expect(await theirs(consuming(new RateLimiterMemory(misspelt)), [...twice, 61_000, "/"])).toEqual([
      200, 429, 200,
    ])
    const old = { points: 1, duration: 60 } as never
    expect(() => rateLimit(old)).toThrow(/"points" is not a member of the options; use "limit" instead/)
    expect(() => rateLimit(old)).toThrow(/"duration" is not a member of the options; use "window" instead/)
  })
})

describe("as the guide on responses states,", () => {
  it("the documented `Retry-After` contains fractions, and Sluice sends whole seconds, rounded up", async () => {
    const clock = commonClock()
    const limiter = new RateLimiterMemory(minutely)
    const documented: RequestHandler = (_req, res, next) => {
      limiter
        .consume("somebody")
        .then(() => next())
        .catch(({ msBeforeNext }: RateLimiterRes) => {
          res.set("Retry-After", String(msBeforeNext / 1000))
          res.status(429).send("Too Many Requests")
        })
    }
    const app = express().use(documented, (_req, res) => void res.send("ok"))
    const [, refused] = await answers(app, clock, ["/", 1, "/"])
    expect(refused?.headers["retry-after"]).toBe("59.999")

    const again = commonClock()
    const send = await serve(await after({})(again))
    again.advance(12_345)
    await send("/")
    const { headers } = await send("/")
    expect(headers["retry-after"]).toMatch(/^\d+$/)
    again.advance(Number(headers["retry-after"]) * 1000)
    expect((await send("/")).status).toBe(200)
  })
})

describe("as the guide on outages states,", () => {
  it("the old `consume` rejects while Redis fails, and Sluice's `enforce` decides in the process", async () => {
    const client = await closedClient(redis)
    const old = new RateLimiterRedis({ ...minutely, storeClient: client })
    await expect(old.consume("somebody")).rejects.toThrow("Connection is closed")
    const now = { service: "degraded", store: redisStore({ client }), logger: quiet }
    const limiter = createLimiter({ ...now, limit: 1, window: "1 minute" })
    afterwards(() => limiter.close())
    const errors: unknown[] = []
    limiter.on("store-error", (error) => errors.push(error))
    const decision = await limiter.enforce({ remoteAddress: "192.0.2.7" })
    expect(decision).toMatchObject({ allowed: true, degraded: true })
    expect(errors).toHaveLength(1)
  })

  it("an old limiter uses its insurance limiter while Redis is frozen", async () => {
    const limiter = new RateLimiterRedis({ ...minutely, storeClient: redis.client })
    const insuranceLimiter = new RateLimiterMemory(minutely)
    const wrapped = new RLWrapperTimeouts({ limiter, timeoutMs: 50, insuranceLimiter })
    const insured = await serve(consuming(wrapped))
    redis.server.freeze()
    expect((await insured("/")).status).toBe(200)
    redis.server.thaw()
  })

  it("the old memory limiter stores every client until its window ends, without a bound", async () => {
    const limiter = new RateLimiterMemory(minutely)
    const many = Array.from({ length: 50 }, (_, n) => as("X-User", `user ${n}`))
    await theirs(consuming(limiter), many)
    expect(limiter.dump().storage).toHaveLength(50)
  })
})

it("a result of rate-limiter-flexible contains the values of a decision under other names", async () => {
  const limiter = new RateLimiterMemory({ points: 3, duration: 60 })
  await limiter.consume("somebody", 2)
  const refused: unknown = await limiter.consume("somebody", 2).catch((reason: unknown) => reason)
  expect(refused).toBeInstanceOf(RateLimiterRes)
  expect(refused).toMatchObject({ remainingPoints: 0, consumedPoints: 4, isFirstInDuration: false })
  const told: unknown[] = []
  const clock = commonClock()
  const app = await after({ limit: 3 }, (now) => {
    now.on("decision", ({ allowed, limit, remaining, retryAfterMs }) => {
      told.push([allowed, limit - remaining, remaining, retryAfterMs])
    })
    return {}
  })(clock)
  await statuses(app, ["/?cost=2", "/?cost=2"], clock)
  expect(told).toEqual([
    [true, 2, 1, 0],
    [false, 2, 1, 60_001],
  ])
})
