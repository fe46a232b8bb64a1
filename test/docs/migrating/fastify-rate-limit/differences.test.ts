import peer from "@fastify/rate-limit"
import { memoryStore } from "@sluice/core"
import type { FastifyError, FastifyInstance, FastifyRequest } from "fastify"
import { describe, expect, it } from "vitest"
import type { Response } from "../../../contracts/adapter/ask.ts"
import { type App, answers, commonClock, statuses } from "../pairs.ts"
import { emptyRedis } from "../redis.ts"
import { admitted, as, times, twice } from "../requests.ts"
import { after, before, type More, registered } from "./app.ts"

const redis = await emptyRedis()

/**
 * Returns a function that resolves to the statuses of an app with Sluice. A step that is a number advances the clock.
 */
async function ours(...[options, more]: Parameters<typeof after>) {
  const clock = commonClock()
  const app = await after(options, more)(clock)
  return (steps: Parameters<typeof statuses>[1]) => statuses(app, steps, clock)
}
async function theirs(...args: Parameters<typeof before>) {
  const clock = commonClock()
  const app: App = await before(...args)()
  return (steps: Parameters<typeof statuses>[1]) => statuses(app, steps, clock)
}

/** This function stands for the app's authentication. */
const authenticate = async ({ headers }: FastifyRequest): Promise<void> => {
  Object.assign(headers, { user: headers["x-user"] })
}

describe("as the guide on limits states,", () => {
  it("the old plugin admits 19 requests within 200 ms under a limit of 10, and Sluice admits 10", async () => {
    const steps = ["/", 59_900, ...times(9, "/"), 200, ...times(10, "/")]
    expect(admitted(await (await theirs({ max: 10 }))(steps)) - 1).toBe(19)
    expect(admitted(await (await ours({ limit: 10 }))(steps)) - 1).toBe(10)
    const firstHit = { algorithm: "fixed-window", align: "first-hit" } as const
    expect(admitted(await (await ours({ limit: 10, ...firstHit }))(steps)) - 1).toBe(19)
  })

  it("the quota returns in one step in the old plugin, and gradually in Sluice", async () => {
    const steps = [...times(10, "/"), 60_001, ...times(10, "/")]
    expect(admitted(await (await theirs({ max: 10 }))(steps))).toBe(20)
    expect(admitted(await (await ours({ limit: 10 }))(steps))).toBeLessThan(15)
    const firstHit = { algorithm: "fixed-window", align: "first-hit" } as const
    expect(admitted(await (await ours({ limit: 10, ...firstHit }))(steps))).toBe(20)
  })

  it("a limit of 0 refuses all requests in the old plugin, and in Sluice only a function may return it", async () => {
    expect(await (await theirs({ max: 0 }))(twice)).toEqual([429, 429])
    await expect(after({ limit: 0 })(commonClock())).rejects.toThrow(/limit: 0 is not a limit/)
    expect(await (await ours({ limit: () => 0 }))(twice)).toEqual([429, 429])
  })

  it("a ban in the old plugin ends with the window, and a block in Sluice after its own duration", async () => {
    const steps = ["/", 50_000, "/", "/", 10_001, "/", 40_000, "/"]
    expect(await (await theirs({ ban: 0 }))(steps)).toEqual([200, 403, 403, 200, 403])
    const penalty = { refusals: 1, for: "1 minute" }
    expect(await (await ours({ penalty }))(steps)).toEqual([200, 429, 429, 429, 429])
  })

  it("the old plugin runs after all functions of its hook, and Sluice runs where it is registered with `hook`", async () => {
    const userOf = ({ headers }: FastifyRequest) => (headers as { user?: string }).user
    // The app authenticates in the route itself, and in a hook that is registered after the limiter.
    const inRoute = (app: FastifyInstance) =>
      void app.get("/", { preHandler: authenticate }, async () => "ok")
    const inHook = (app: FastifyInstance) => void app.addHook("preHandler", authenticate)
    const steps = ["7", "8", "7"].map((user) => as("X-User", user))
    for (const more of [inRoute, inHook]) {
      const old = { hook: "preHandler", keyGenerator: (req: FastifyRequest) => String(userOf(req)) } as const
      expect(await (await theirs(old, more))(steps)).toEqual([200, 200, 429])
      const own = { field: "user", fields: { user: userOf } } as const
      expect(await (await ours({ ...own, hook: "preHandler" }, more))(steps)).toEqual([200, 429, 429])
      expect(await (await ours({ ...own, hook: "handler" }, more))(steps)).toEqual([200, 200, 429])
      expect(await (await ours(own, more))(steps)).toEqual([200, 200, 429])
    }
  })

  it("a refusal without rate limit headers still contains `Retry-After`", async () => {
    const clock = commonClock()
    const [, refused] = await answers(await after({ headers: false })(clock), clock, twice)
    expect(refused?.headers["retry-after"]).toBe("61")
    expect(Object.keys(refused?.headers ?? {}).join()).not.toContain("ratelimit")
  })

  it("routes of one `groupId` have separate counters, and routes of one `group` share a counter", async () => {
    const steps = ["/send", "/resend"]
    const grouped = (limit: object) => (app: FastifyInstance) => {
      for (const path of steps) app.get(path, { config: { rateLimit: limit as never } }, async () => "ok")
    }
    const old = grouped({ max: 1, timeWindow: "1 hour", groupId: "codes" })
    expect(await (await theirs({}, old))(steps)).toEqual([200, 200])
    expect(await (await theirs({ redis: redis.client }, old))(steps)).toEqual([200, 200])
    const group = grouped({ limit: 1, window: "1 hour", group: "codes" })
    expect(await (await ours({}, group))(steps)).toEqual([200, 429])
  })

  it("HEAD requests have a separate quota on a route with its own limit, but not in Sluice", async () => {
    const steps = ["/own", { path: "/own", method: "HEAD" }]
    const own = (limit: object) => (app: FastifyInstance) =>
      void app.get("/own", { config: { rateLimit: limit as never } }, async () => "ok")
    expect(await (await theirs({}, own({ max: 1 })))(steps)).toEqual([200, 200])
    expect(await (await ours({}, own({ limit: 1, window: "1 minute" })))(steps)).toEqual([200, 429])
  })

  it("the old plugin does not count unknown paths, and Sluice does", async () => {
    const steps = ["/nowhere", "/nowhere"]
    expect(await (await theirs({}))(steps)).toEqual([404, 404])
    expect(await (await ours({}))(steps)).toEqual([404, 429])
    expect(await (await ours({ notFound: false }))(steps)).toEqual([404, 404])
    const limitless = (app: FastifyInstance) => {
      app.setNotFoundHandler({ preHandler: app.rateLimit() }, async (_request, reply) =>
        reply.code(404).send(),
      )
    }
    expect(await (await theirs({}, limitless))(steps)).toEqual([404, 429])
    const limited = (app: FastifyInstance) => {
      const preHandler = app.rateLimit({ max: 2 })
      app.setNotFoundHandler({ preHandler }, async (_request, reply) => reply.code(404).send())
    }
    const thrice = [...steps, "/nowhere", "/"]
    expect(await (await theirs({}, limited))(thrice)).toEqual([404, 404, 429, 200])
    const notFound = { limit: 2, window: "1 minute" }
    expect(await (await ours({ notFound }))(thrice)).toEqual([404, 404, 429, 200])
  })

  it("the old plugin counts preflights that a route handles, and Sluice counts them only with `match.methods`", async () => {
    const headers = { Origin: "https://example.com", "Access-Control-Request-Method": "GET" }
    const preflight = { path: "/", method: "OPTIONS", headers }
    const steps = [preflight, preflight]
    const answered = (app: FastifyInstance) => void app.options("/", async () => "ok")
    expect(await (await theirs({}, answered))(steps)).toEqual([200, 429])
    expect(await (await ours({}, answered))(steps)).toEqual([200, 200])
    expect(await (await ours({ match: { methods: ["OPTIONS"] } }, answered))(steps)).toEqual([200, 429])
  })

  it("fake clients that fill the memory store unblock a refused client in the old plugin, but not in Sluice", async () => {
    const junk = Array.from({ length: 20 }, (_, n) => as("X-User", `junk ${n}`))
    const blocked = as("X-User", "blocked")
    const steps = [blocked, blocked, ...junk, blocked]
    const old = await theirs({ cache: 10, keyGenerator: (req) => String(req.headers["x-user"]) })
    expect((await old(steps)).at(-1)).toBe(200)
    const store = memoryStore({ maxKeys: 10 })
    const now = await ours({ store, clock: undefined, field: "header:x-user" })
    expect((await now(steps)).at(-1)).toBe(429)
  })

  it("a route inherits missing options in the old plugin, but must set limit and window in Sluice", async () => {
    const partly = (app: FastifyInstance) => {
      app.get("/own", { config: { rateLimit: { max: 2 } as never } }, async () => "ok")
    }
    const steps = [...times(3, "/own"), 60_001, "/own"]
    expect(await (await theirs({}, partly))(steps)).toEqual([200, 200, 429, 200])
    const wrong = (app: FastifyInstance) => {
      app.get("/own", { config: { rateLimit: { limit: 2 } as never } }, async () => "ok")
    }
    await expect(after({}, wrong)(commonClock())).rejects.toThrow(/config.rateLimit.window: is missing/)
  })

  it("the old memory store does not enforce the waits of `exponentialBackoff`", async () => {
    const clock = commonClock()
    const app = await before({ exponentialBackoff: true })()
    const told = await answers(app, clock, times(4, "/"))
    expect(told.map(({ headers }) => headers["retry-after"])).toEqual([undefined, "60", "120", "240"])
    clock.advance(60_001)
    expect(await statuses(app, ["/"], clock)).toEqual([200])
  })
})

describe("as the guide on options states,", () => {
  it("a route exempts clients with `allowList` in the old plugin, and with `match` in Sluice", async () => {
    const isFriend = ({ headers }: FastifyRequest) => headers["x-user"] === "friend"
    const own = (limit: object) => (app: FastifyInstance) =>
      void app.get("/own", { config: { rateLimit: limit as never } }, async () => "ok")
    const steps = [as("X-User", "friend", "/own"), as("X-User", "friend", "/own"), ...times(2, "/own")]
    expect(await (await theirs({}, own({ max: 1, allowList: isFriend })))(steps)).toEqual([
      200, 200, 200, 429,
    ])
    const match = (request: FastifyRequest) => !isFriend(request)
    const rule = { limit: 1, window: "1 minute", match }
    expect(await (await ours({}, own(rule)))(steps)).toEqual([200, 200, 200, 429])
  })

  it("the old plugin passes the key to callbacks, and Sluice's `decision` event contains the key", async () => {
    const keys: unknown[] = []
    await (await theirs({ onExceeding: (_request, key) => keys.push(key) }))(["/"])
    const app: More = ({ sluice }) => {
      sluice.limiter.on("decision", (_decision, _request, { counters }) => keys.push(counters[0]?.partition))
    }
    await (await ours({}, app))(["/"])
    expect(keys).toEqual(["127.0.0.1", "127.0.0.1"])
  })

  it("Sluice rejects a store of the old plugin at startup", async () => {
    class OldStore {
      incr(_key: string, done: (error: null, result: { current: number; ttl: number }) => void): void {
        done(null, { current: 1, ttl: 1 })
      }
      child(): OldStore {
        return this
      }
    }
    expect(await (await theirs({ store: OldStore }))(["/"])).toEqual([200])
    await expect(after({ store: OldStore as never })(commonClock())).rejects.toThrow(
      /store: .* is not a store/,
    )
  })

  it("the old plugin replaces a wrong option with the default, and Sluice's error names its own option", async () => {
    const limit = (await answers(await before({ max: "1" as never })(), commonClock(), ["/"]))[0]?.headers
    expect(limit?.["x-ratelimit-limit"]).toBe("1000")
    await expect(after({ limit: "1" as never })(commonClock())).rejects.toThrow(/limit: "1" is not a limit/)
    const old = { max: 1, timeWindow: "1 minute" } as never
    await expect(after(old)(commonClock())).rejects.toThrow(/"max" is not a member.*use "limit" instead/)
    await expect(after(old)(commonClock())).rejects.toThrow(/"timeWindow" is not a member.*"window"/)
  })

  it("Sluice does not read `trustProxy`", async () => {
    const steps = [as("X-Forwarded-For", "192.0.2.1"), as("X-Forwarded-For", "192.0.2.2")]
    expect(await (await theirs({}, undefined, { trustProxy: ["127.0.0.1"] }))(steps)).toEqual([200, 200])
    expect(await (await ours({}))(steps)).toEqual([200, 429])
    expect(await (await ours({ trustedProxies: 1 }))(steps)).toEqual([200, 200])
  })
})

it("@sluice/fastify counts each IPv6 /64 network, like the old plugin", async () => {
  const steps = ["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"].map((ip) => as("X-Forwarded-For", ip))
  expect(await (await theirs({}, undefined, { trustProxy: ["127.0.0.1"] }))(steps)).toEqual([200, 429, 200])
  expect(await (await ours({ trustedProxies: 1 }))(steps)).toEqual([200, 429, 200])
})

describe("as the guide on responses states,", () => {
  it("X-RateLimit-Reset contains the remaining seconds in the old plugin, and a timestamp with Sluice's `legacy` headers", async () => {
    const [old] = await answers(await before({})(), commonClock(), ["/"])
    expect(old?.headers["x-ratelimit-reset"]).toBe("60")
    const clock = commonClock()
    const [legacy] = await answers(await after({ headers: "legacy" })(clock), clock, ["/"])
    const epochSeconds = Number(legacy?.headers["x-ratelimit-reset"])
    expect(epochSeconds).toBeGreaterThan(clock.now() / 1000)
    expect(epochSeconds).toBeLessThan(clock.now() / 1000 + 120)
  })

  it("Sluice can send headers with the names that the old plugin uses", async () => {
    const [old] = await answers(await before({ max: 5 })(), commonClock(), ["/"])
    const clock = commonClock()
    const headers = { dialect: "triple", prefix: "X-RateLimit" } as const
    const exact = { algorithm: "fixed-window", align: "first-hit" } as const
    const [now] = await answers(await after({ limit: 5, headers, ...exact })(clock), clock, ["/"])
    const fields = ({ headers }: Response) =>
      Object.entries(headers).filter(([name]) => name.startsWith("x-ratelimit"))
    expect(old && fields(old)).toEqual([
      ["x-ratelimit-limit", "5"],
      ["x-ratelimit-remaining", "4"],
      ["x-ratelimit-reset", "60"],
    ])
    expect(now && new Map(fields(now))).toEqual(
      new Map([...(old ? fields(old) : []), ["x-ratelimit-policy", "5;w=60"]]),
    )
  })

  it("the old plugin passes a refusal to the app's error handler, and Sluice responds itself", async () => {
    const handled = (app: FastifyInstance) => {
      app.setErrorHandler((_error, _request, reply) => reply.code(418).send("handled"))
    }
    expect(await (await theirs({}, handled))(twice)).toEqual([200, 418])
    expect(await (await ours({}, handled))(twice)).toEqual([200, 429])
    expect(await (await ours({ throwOnRefusal: true }, handled))(twice)).toEqual([200, 418])
    const [, old] = await answers(await before({})(), commonClock(), twice)
    const error = { statusCode: 429, error: "Too Many Requests" }
    expect(JSON.parse(old?.body ?? "")).toEqual({
      ...error,
      message: "Rate limit exceeded, retry in 1 minute",
    })
    const clock = commonClock()
    const [, now] = await answers(await after({})(clock), clock, twice)
    expect(now?.headers["content-type"]).toBe("application/problem+json")
  })

  it("the error handler of the old README works with throwOnRefusal", async () => {
    const clock = commonClock()
    const handled = (app: FastifyInstance) => {
      app.setErrorHandler((error: FastifyError, _request, reply) => {
        if (error.statusCode === 429) {
          reply.code(429)
          error.message = "You hit the rate limit! Slow down please!"
        }
        reply.send(error)
      })
    }
    const [, old] = await answers(await before({}, handled)(), clock, twice)
    const [, now] = await answers(await after({ throwOnRefusal: true }, handled)(clock), clock, twice)
    const error = {
      statusCode: 429,
      error: "Too Many Requests",
      message: "You hit the rate limit! Slow down please!",
    }
    expect([old, now].map((answer) => JSON.parse(answer?.body ?? ""))).toEqual([
      error,
      { ...error, code: "SLUICE_RATE_LIMIT_EXCEEDED" },
    ])
    expect([old?.headers["retry-after"], now?.headers["retry-after"]]).toEqual(["60", "61"])
  })

  it("a route can set its own response and callback in both libraries", async () => {
    const calls: string[] = []
    const route = (rateLimit: object) => (app: FastifyInstance) =>
      void app.get("/own", { config: { rateLimit: rateLimit as never } }, async () => "ok")
    const old = route({
      max: 1,
      onExceeded: (request: FastifyRequest) => calls.push(`old ${request.url}`),
      errorResponseBuilder: () => ({ statusCode: 429, sorry: true }),
    })
    const now = route({
      limit: 1,
      window: "1 minute",
      onRejected: (request: FastifyRequest) => void calls.push(`now ${request.url}`),
      rejection: { body: { statusCode: 429, sorry: true } },
    })
    const clock = commonClock()
    const steps = times(2, "/own")
    const [, was] = await answers(await before({}, old)(), clock, steps)
    const [, is] = await answers(await after({}, now)(clock), clock, steps)
    expect(is?.body).toBe(was?.body)
    expect(calls).toEqual(["old /own", "now /own"])
  })
})

it("@sluice/fastify counts calls of app.sluice.limiter together with the plugin's requests", async () => {
  const app = await registered({ limit: 1, window: "1 minute" }, (app) => {
    app.get("/call", { config: { rateLimit: false } }, (request) => app.sluice.limiter.decide(request))
  })
  expect(await statuses(app, ["/call", "/"])).toEqual([200, 429])
})

it("@sluice/fastify runs next to the old plugin if no route has its own limit", async () => {
  const clock = commonClock()
  const beside =
    (limit?: object): More =>
    async (app) => {
      await app.register(peer, { max: 2 })
      if (limit !== undefined) app.get("/own", { config: { rateLimit: limit as never } }, async () => "ok")
    }
  const app = await after({ limit: 3, headers: false }, beside())(clock)
  const told = await answers(app, clock, times(3, "/"))
  expect(told.map(({ status, headers }) => [status, headers["x-ratelimit-remaining"]])).toEqual([
    [200, "1"],
    [200, "0"],
    [429, "0"],
  ])
  await expect(after({}, beside({ max: 3 }))(clock)).rejects.toThrow(/"max" is not a member/)
})
