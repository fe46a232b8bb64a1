import { redisStore } from "@sluice/core/redis"
import { rateLimit as sluice } from "@sluice/koa"
import Koa, { type Middleware } from "koa"
import { describe, expect, it } from "vitest"
import { type App, answers, commonClock, serve, statuses } from "../pairs.ts"
import { closedClient, withRedis } from "../redis.ts"
import { admitted, as, quiet, times, twice } from "../requests.ts"
import { after, appOf, before, inMemory, inRedis, type PeerOptions, peer } from "./app.ts"

const redis = withRedis()
type Steps = Parameters<typeof statuses>[1]

const theirs = async (options: PeerOptions, steps: Steps): Promise<number[]> => {
  const clock = commonClock()
  return statuses(await before(options)(clock), steps, clock)
}
const ours = async (options: Parameters<typeof after>[0], steps: Steps): Promise<number[]> => {
  const clock = commonClock()
  return statuses(await after({ logger: quiet, ...options })(clock), steps, clock)
}

describe("what the guide says of the limit", () => {
  it("is that of a limit of 10 come 19 within 200 ms in memory and 10 in its log in Redis, and here 10", async () => {
    const burst = (count: number) => times(count, ["/", 1]).flat()
    const steps = ["/", 59_900, ...burst(9), 180, ...burst(10)]
    expect(admitted(await theirs({ max: 10 }, steps)) - 1).toBe(19)
    expect(admitted(await theirs({ ...inRedis(redis.client), max: 10 }, steps)) - 1).toBe(10)
    expect(admitted(await ours({ limit: 10 }, steps)) - 1).toBe(10)
    expect(admitted(await ours({ limit: 10, algorithm: "sliding-log" }, steps)) - 1).toBe(10)
  })

  it("is that a client that waits as long as it is told is refused again, and here admitted", async () => {
    async function afterTheWait(app: App, clock: ReturnType<typeof commonClock>): Promise<number> {
      const send = await serve(app)
      clock.advance(300)
      await send("/")
      clock.advance(500)
      const seconds = Number((await send("/")).headers["retry-after"])
      clock.advance(seconds * 1000)
      return (await send("/")).status
    }
    for (const options of [inMemory(), inRedis(redis.client)]) {
      const clock = commonClock()
      expect(await afterTheWait(await before(options)(clock), clock)).toBe(429)
    }
    const clock = commonClock()
    expect(await afterTheWait(await after({})(clock), clock)).toBe(200)
  })

  it("is that `Retry-After` is 0 with half a second to go", async () => {
    const clock = commonClock()
    const [, , late] = await answers(await before({})(clock), clock, ["/", 59_500, "/", "/"])
    expect([late?.status, late?.headers["retry-after"]]).toEqual([429, "0"])
  })

  it("is that a refused request takes nothing from the log in Redis either", async () => {
    expect(await theirs(inRedis(redis.client), ["/", 30_000, "/", 30_001, "/"])).toEqual([200, 429, 200])
  })

  it("is that in Redis the server counts by whose clock is its own, and here by that of Redis", async () => {
    const clock = commonClock()
    const limits = peer({ ...inRedis(redis.client), duration: 60_000, max: 1 })
    const day = { limit: 1, window: "1 day", service: "clock", storeTimeoutMs: 20_000 } as const
    const now = sluice({ ...day, store: redisStore({ client: redis.client }) })
    const steps = [...twice, 61_000, "/"]
    expect(await statuses(appOf(limits), steps, clock)).toEqual([200, 429, 200])
    const again = commonClock()
    expect(await statuses(appOf(now), [...twice, 90_000_000, "/"], again)).toEqual([200, 429, 429])
  })

  it("is that the Map of the memory driver forgets nobody", async () => {
    const { driver, db } = inMemory()
    const clients = Array.from({ length: 20 }, (_, n) => as("X-Forwarded-For", `192.0.2.${n}`))
    await theirs({ driver, db }, [...clients, 600_000, "/"])
    expect(db.size).toBe(21)
  })
})

describe("what the guide says of who is counted", () => {
  it("is that with `app.proxy` a client says by itself who it is, and here does not", async () => {
    const steps = ["198.51.100.1", "198.51.100.2"].map((made) => as("X-Forwarded-For", `${made}, 192.0.2.7`))
    expect(await theirs({}, steps)).toEqual([200, 200])
    expect(await ours({}, steps)).toEqual([200, 429])
  })

  it("is that `maxIpsCount` helps", async () => {
    const app = new Koa({ proxy: true, maxIpsCount: 1 }).use(peer({ ...inMemory(), max: 1 }))
    app.use((ctx) => {
      ctx.body = "ok"
    })
    const steps = ["198.51.100.1", "198.51.100.2"].map((made) => as("X-Forwarded-For", `${made}, 192.0.2.7`))
    expect(await statuses(app.callback(), steps)).toEqual([200, 429])
  })

  it("is that `app.proxy` is not read", async () => {
    const steps = [as("X-Forwarded-For", "192.0.2.1"), as("X-Forwarded-For", "192.0.2.2")]
    expect(await theirs({}, steps)).toEqual([200, 200])
    expect(await ours({ trustedProxies: undefined }, steps)).toEqual([200, 429])
    expect(await ours({ trustedProxies: 1 }, steps)).toEqual([200, 200])
  })

  it("is that each IPv6 address is a client, and here each /64", async () => {
    const steps = ["2001:db8::1", "2001:db8::2"].map((ip) => as("X-Forwarded-For", ip))
    expect(await theirs({}, steps)).toEqual([200, 200])
    expect(await ours({}, steps)).toEqual([200, 429])
  })

  it("is that an empty id is an error, and here missing", async () => {
    expect(await theirs({ id: (ctx) => ctx.get("x-user") }, ["/"])).toEqual([500])
    expect(await ours({ field: "header:x-user" }, twice)).toEqual([200, 429])
  })

  it("is that preflights are counted, and here are not", async () => {
    const headers = { Origin: "https://example.com", "Access-Control-Request-Method": "GET" }
    const preflight = { path: "/", method: "OPTIONS", headers }
    expect(await theirs({}, [preflight, preflight, "/"])).toEqual([200, 429, 429])
    expect(await ours({}, [preflight, preflight, "/"])).toEqual([200, 200, 200])
  })
})

describe("what the guide says of options and answers", () => {
  it("is that a wrong one fails with the first request, and here throws with its name here", async () => {
    expect(await theirs({ driver: "memroy" as never }, ["/"])).toEqual([500])
    expect(await theirs({ durration: 1 } as PeerOptions, [...twice, 1_000, "/"])).toEqual([200, 429, 429])
    const old = { driver: "memory", max: 1, duration: 60_000 } as never
    expect(() => sluice(old)).toThrow(/"max" is not a member of the options; use "limit" instead/)
    expect(() => sluice(old)).toThrow(/"duration" is not a member of the options; use "window" instead/)
  })

  it("is a text before, a problem after, and a Reset that had fractions of a second in memory", async () => {
    const clock = commonClock()
    clock.advance(1)
    const [, old] = await answers(await before({})(clock), clock, twice)
    expect(old?.body).toBe("Rate limit exceeded, retry in 1 minute.")
    expect(old?.headers["content-type"]).toBe("text/plain; charset=utf-8")
    expect(Number.isInteger(Number(old?.headers["x-ratelimit-reset"]))).toBe(false)
    const again = commonClock()
    const [, now] = await answers(await after({ headers: "legacy" })(again), again, twice)
    expect(now?.headers["content-type"]).toBe("application/problem+json")
    expect(now?.headers["x-ratelimit-reset"]).toMatch(/^\d+$/)
  })

  it("is that the state had something of a refusal alone, and has every decision", async () => {
    const seen: unknown[] = []
    const watch: Middleware = async (ctx, next) => {
      await next()
      const { rateLimit } = ctx.state
      seen.push(rateLimit && Object.keys(rateLimit).includes("after") ? "after" : rateLimit?.allowed)
    }
    const clock = commonClock()
    await statuses(await before({}, watch)(clock), twice, clock)
    const again = commonClock()
    await statuses(await after({}, watch)(again), twice, again)
    expect(seen).toEqual([undefined, "after", true, false])
  })
})

describe("what the guide says of an outage", () => {
  it("is 500 for everybody while Redis fails, and a limit in the process", async () => {
    expect(await theirs(inRedis(await closedClient(redis)), twice)).toEqual([500, 500])
    const store = redisStore({ client: await closedClient(redis) })
    expect(await ours({ service: "closed", store, clock: undefined }, twice)).toEqual([200, 429])
  })

  it("is no answer while Redis is frozen, and one after the deadline", async () => {
    const clock = commonClock()
    const old = await serve(await before(inRedis(redis.client))(clock))
    const options = {
      service: "frozen",
      store: redisStore({ client: redis.client }),
      clock: undefined,
      logger: quiet,
    }
    const now = await serve(await after(options)(clock))
    await old("/")
    redis.server.freeze()
    let isAnswered = false
    const waiting = old("/").finally(() => {
      isAnswered = true
    })
    expect((await now("/")).status).toBe(200)
    expect(isAnswered).toBe(false)
    redis.server.thaw()
    expect((await waiting).status).toBe(429)
  })
})
