import { rateLimit as sluice } from "@sluice/koa"
import { redisStore } from "@sluice/redis"
import Koa, { type Middleware } from "koa"
import { describe, expect, it } from "vitest"
import { type App, answers, commonClock, serve, statuses } from "../pairs.ts"
import { emptyRedis } from "../redis.ts"
import { admitted, as, quiet, times, twice } from "../requests.ts"
import { after, appOf, before, inMemory, inRedis, type PeerOptions, peer } from "./app.ts"

const redis = await emptyRedis()
type Steps = Parameters<typeof statuses>[1]

const theirs = async (options: PeerOptions, steps: Steps): Promise<number[]> => {
  const clock = commonClock()
  return statuses(await before(options)(clock), steps, clock)
}
const ours = async (options: Parameters<typeof after>[0], steps: Steps): Promise<number[]> => {
  const clock = commonClock()
  return statuses(await after({ logger: quiet, ...options })(clock), steps, clock)
}

describe("as the guide on limits states,", () => {
  it("under a limit of 10, the old library admits 19 requests in memory and 10 in Redis, and Sluice 10", async () => {
    const burst = (count: number) => times(count, ["/", 1]).flat()
    const steps = ["/", 59_900, ...burst(9), 180, ...burst(10)]
    expect(admitted(await theirs({ max: 10 }, steps)) - 1).toBe(19)
    expect(admitted(await theirs({ ...inRedis(redis.client), max: 10 }, steps)) - 1).toBe(10)
    expect(admitted(await ours({ limit: 10 }, steps)) - 1).toBe(10)
    expect(admitted(await ours({ limit: 10, algorithm: "sliding-log" }, steps)) - 1).toBe(10)
  })

  it("after the wait in Retry-After, the old library refuses a client again, and Sluice admits it", async () => {
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

  it("the old library sends a `Retry-After` of 0 when half a second remains", async () => {
    const clock = commonClock()
    const [, , late] = await answers(await before({})(clock), clock, ["/", 59_500, "/", "/"])
    expect([late?.status, late?.headers["retry-after"]]).toEqual([429, "0"])
  })

  it("a refused request takes no units from the old library's log in Redis", async () => {
    expect(await theirs(inRedis(redis.client), ["/", 30_000, "/", 30_001, "/"])).toEqual([200, 429, 200])
  })

  it("with Redis, the old library uses the app's clock, and Sluice uses the clock of Redis", async () => {
    const clock = commonClock()
    const limits = peer({ ...inRedis(redis.client), duration: 60_000, max: 1 })
    const day = { limit: 1, window: "1 day", service: "clock", storeTimeoutMs: 20_000 } as const
    const now = sluice({ ...day, store: redisStore({ client: redis.client }) })
    const steps = [...twice, 61_000, "/"]
    expect(await statuses(appOf(limits), steps, clock)).toEqual([200, 429, 200])
    const again = commonClock()
    expect(await statuses(appOf(now), [...twice, 90_000_000, "/"], again)).toEqual([200, 429, 429])
  })

  it("the Map of the old memory driver never forgets a client", async () => {
    const { driver, db } = inMemory()
    const clients = Array.from({ length: 20 }, (_, n) => as("X-Forwarded-For", `192.0.2.${n}`))
    await theirs({ driver, db }, [...clients, 600_000, "/"])
    expect(db.size).toBe(21)
  })
})

describe("as the guide on clients states,", () => {
  it("a client can spoof its address with `app.proxy`, but not in Sluice", async () => {
    const steps = ["198.51.100.1", "198.51.100.2"].map((made) => as("X-Forwarded-For", `${made}, 192.0.2.7`))
    expect(await theirs({}, steps)).toEqual([200, 200])
    expect(await ours({}, steps)).toEqual([200, 429])
  })

  it("Koa's option `maxIpsCount` prevents clients from spoofing their addresses", async () => {
    const app = new Koa({ proxy: true, maxIpsCount: 1 }).use(peer({ ...inMemory(), max: 1 }))
    app.use((ctx) => {
      ctx.body = "ok"
    })
    const steps = ["198.51.100.1", "198.51.100.2"].map((made) => as("X-Forwarded-For", `${made}, 192.0.2.7`))
    expect(await statuses(app.callback(), steps)).toEqual([200, 429])
  })

  it("Sluice does not read `app.proxy`", async () => {
    const steps = [as("X-Forwarded-For", "192.0.2.1"), as("X-Forwarded-For", "192.0.2.2")]
    expect(await theirs({}, steps)).toEqual([200, 200])
    expect(await ours({ trustedProxies: undefined }, steps)).toEqual([200, 429])
    expect(await ours({ trustedProxies: 1 }, steps)).toEqual([200, 200])
  })

  it("the old library counts each IPv6 address, and Sluice each /64 network", async () => {
    const steps = ["2001:db8::1", "2001:db8::2"].map((ip) => as("X-Forwarded-For", ip))
    expect(await theirs({}, steps)).toEqual([200, 200])
    expect(await ours({}, steps)).toEqual([200, 429])
    expect(await ours({ ipv6Prefix: 128 }, steps)).toEqual([200, 200])
  })

  it("the old library fails on an empty id, and Sluice treats the field as missing", async () => {
    expect(await theirs({ id: (ctx) => ctx.get("x-user") }, ["/"])).toEqual([500])
    expect(await ours({ field: "header:x-user" }, twice)).toEqual([200, 429])
  })

  it("the old `blacklist` takes a function and leads to 403, and `deny` takes a list and leads to 429", async () => {
    const [denied, other] = ["192.0.2.66", "192.0.2.7"].map((ip) => as("X-Forwarded-For", ip))
    const steps = [denied, other] as Steps
    expect(await theirs({ blacklist: (ctx) => ctx.ip === "192.0.2.66" }, steps)).toEqual([403, 200])
    expect(await ours({ deny: ["192.0.2.66"] }, steps)).toEqual([429, 200])
  })

  it("the old library counts preflights, and Sluice does not", async () => {
    const headers = { Origin: "https://example.com", "Access-Control-Request-Method": "GET" }
    const preflight = { path: "/", method: "OPTIONS", headers }
    expect(await theirs({}, [preflight, preflight, "/"])).toEqual([200, 429, 429])
    expect(await ours({}, [preflight, preflight, "/"])).toEqual([200, 200, 200])
  })
})

describe("as the guide on options and responses states,", () => {
  it("the old library reports a wrong option late or never, and Sluice throws immediately, naming its own option", async () => {
    expect(await theirs({ driver: "memroy" as never }, ["/"])).toEqual([500])
    expect(await theirs({ durration: 1 } as PeerOptions, [...twice, 1_000, "/"])).toEqual([200, 429, 429])
    const old = { driver: "memory", max: 1, duration: 60_000 } as never
    expect(() => sluice(old)).toThrow(/"max" is not a member of the options; use "limit" instead/)
    expect(() => sluice(old)).toThrow(/"duration" is not a member of the options; use "window" instead/)
  })

  it("the old library sends text and a fractional Reset, and Sluice sends a problem document", async () => {
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

  it("both libraries send `Retry-After` even without rate limit headers", async () => {
    for (const create of [before({ disableHeader: true }), after({ headers: false })]) {
      const clock = commonClock()
      const [, refused] = await answers(await create(clock), clock, twice)
      expect(refused?.status).toBe(429)
      expect(refused?.headers["retry-after"]).toMatch(/^(59|60|61)$/)
      expect(Object.keys(refused?.headers ?? {}).join()).not.toContain("ratelimit")
    }
  })

  it("`ctx.state` contains only refusals in the old library, and every decision in Sluice", async () => {
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
