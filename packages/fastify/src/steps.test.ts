import { createLimiter, type Rule } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { liveRules, type RuleSource } from "@sluice/rules"
import fastify, { type FastifyInstance, type FastifyRequest } from "fastify"
import { afterEach, describe, expect, it } from "vitest"
import { type RateLimitOptions, type RouteRateLimit, rateLimit } from "./index.ts"

const clock = manualClock()
const apps: FastifyInstance[] = []
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close()
})

const users = new WeakMap<FastifyRequest, string>()
/** A `preHandler` of a route that simulates authentication. */
const authenticate = async (request: FastifyRequest): Promise<void> => {
  const { user } = request.headers
  if (typeof user === "string") users.set(request, user)
}
const fields = { user: (request: FastifyRequest) => users.get(request) }

const address: Rule = { name: "address", field: "ip", limit: 9, window: "1 minute" }
const user: Rule = { name: "user", field: "user", limit: 1, window: "1 minute", onMissing: "skip" }
const note: Rule = { name: "note", field: "body:note", limit: 9, window: "1 minute", onMissing: "skip" }

async function make(options: RateLimitOptions, own?: RouteRateLimit): Promise<FastifyInstance> {
  const app = fastify()
  apps.push(app)
  const all = "limiter" in options ? options : { clock, fields, ...options }
  await app.register(rateLimit, all as RateLimitOptions)
  app.route({
    method: ["GET", "POST"],
    url: "/",
    config: own === undefined ? {} : { rateLimit: own },
    preHandler: authenticate,
    handler: async (request) => request.rateLimit,
  })
  return app
}

const as = (app: FastifyInstance, name: string, more: object = {}) =>
  app.inject({ url: "/", headers: { user: name }, ...more })

async function statuses(app: FastifyInstance, ...names: readonly string[]): Promise<number[]> {
  const all: number[] = []
  for (const name of names) all.push((await as(app, name)).statusCode)
  return all
}

describe("rules that are checked at different steps", () => {
  it("result in one decision on the request, and one list of headers on the response", async () => {
    const app = await make({ rules: [user, note, address] })
    const { headers, body } = await as(app, "a", { method: "POST", payload: { note: "n" } })
    expect(headers["ratelimit-policy"]).toBe('"user";q=1;w=60, "note";q=9;w=60, "address";q=9;w=60')
    expect(headers.ratelimit).toBe('"user";r=0;t=61')
    expect(JSON.parse(body)).toMatchObject({
      policy: "user",
      checks: [
        { policy: "user", remaining: 0 },
        { policy: "note", remaining: 8 },
        { policy: "address", remaining: 8 },
      ],
    })
  })

  it("are checked only up to the step that the request reaches", async () => {
    const app = await make({ rules: [user, address] })
    app.get("/closed", { preHandler: async (_request, reply) => reply.code(403).send() }, async () => "ok")
    const { headers } = await app.inject("/closed")
    expect(headers.ratelimit).toBe('"address";r=8;t=61')
  })

  it.each([
    ["rules of the plugin", { rules: [user, address] }, {}],
    ["rules with hook: handler", { rules: [user], hook: "handler" }, {}],
    ["a rule of the route", { rules: [] }, { rateLimit: { ...user, name: "own" } }],
  ] as const)(
    "are checked once, as %s, if a preHandler hook calls the 404 handler",
    async (_what, options, config) => {
      const app = await make(options as unknown as RateLimitOptions)
      app.get("/hidden", {
        config: config as object,
        preHandler: [authenticate, (_request, reply) => void reply.callNotFound()],
        handler: async () => "ok",
      })
      app.get("/other", { preHandler: authenticate }, (_request, reply) => void reply.callNotFound())
      const ask = async (url: string, name: string) =>
        (await app.inject({ url, headers: { user: name } })).statusCode
      expect([await ask("/hidden", "a"), await ask("/hidden", "a")]).toEqual([404, 429])
      if (!("rateLimit" in config)) expect(await ask("/other", "a")).toBe(429)
      // The routes share the 404 handler, and each client is counted once.
      expect([await ask("/other", "b"), await ask("/none", "c"), await ask("/hidden", "d")]).toEqual([
        404, 404, 404,
      ])
    },
  )
})

describe("a route's own rule", () => {
  const own: RouteRateLimit = { limit: 1, window: "1 minute", field: "user" }

  it("is checked after the route's hooks if it counts by a field of the app", async () => {
    const app = await make({ rules: [] }, own)
    expect(await statuses(app, "a", "b", "a")).toEqual([200, 200, 429])
  })

  it("is checked before the hooks if it counts by address, even if a plugin's rule counts by another field", async () => {
    const app = await make({ rules: [user] }, { ...own, field: "ip", limit: 3 })
    expect(await statuses(app, "a", "a", "b", "c")).toEqual([200, 429, 200, 429])
  })
})

describe("rules of a source", () => {
  it("are checked after the route's hooks as soon as one rule uses a field of the app", async () => {
    let rules: Rule[] = [address]
    const source: RuleSource = { load: async () => ({ rules, problems: [] }) }
    const limiter = createLimiter<FastifyRequest>({
      clock,
      fields,
      rules: liveRules(source),
      onRulesMissing: "allow",
    })
    const app = await make({ limiter })
    await limiter.ready()
    expect(await statuses(app, "a", "a")).toEqual([200, 200])
    rules = [address, user]
    await limiter.refresh()
    expect(await statuses(app, "a", "a", "b")).toEqual([200, 429, 200])
    await limiter.close()
  })
})

describe("a limiter whose rules are missing", () => {
  it("refuses requests on arrival, before the app's hooks", async () => {
    const source: RuleSource = { load: () => Promise.reject(new Error("no rules")) }
    const logger = { warn() {}, error() {} }
    const app = await make({ rules: liveRules(source), onRulesMissing: "deny", logger })
    let asked = 0
    app.get("/counted", { preHandler: async () => void asked++ }, async () => "ok")
    expect((await app.inject("/counted")).statusCode).toBe(503)
    expect(asked).toBe(0)
  })
})

describe("functions of the app", () => {
  const admin = (request: FastifyRequest) => users.get(request) === "admin"
  const minutely = { limit: 1, window: "1 minute" } as const

  it("that return a limit are called after the route's hooks", async () => {
    const app = await make({ ...minutely, limit: (request: FastifyRequest) => (admin(request) ? 3 : 1) })
    expect(await statuses(app, "admin", "admin", "admin", "admin", "a")).toEqual([200, 200, 200, 429, 429])
  })

  it.each([
    ["before the hooks of the route by default", undefined, [200, 429, 429]],
    ['after the hooks of the route with hook: "handler"', "handler", [200, 200, 200]],
  ] as const)("that skip requests are called %s", async (_when, hook, expected) => {
    const app = await make({ ...minutely, skip: admin, ...(hook !== undefined && { hook }) })
    expect(await statuses(app, "admin", "admin", "admin")).toEqual(expected)
  })
})

describe("the option hook", () => {
  it.each(["onRequest", "preHandler", "handler"] as const)(
    "moves the check of all rules to %s",
    async (hook) => {
      const limits = { rules: [{ ...user, onMissing: "ip" } as Rule, address], hook }
      const app = await make(limits)
      expect(await statuses(app, "a", "b", "a")).toEqual(
        hook === "handler" ? [200, 200, 429] : [200, 429, 429],
      )
    },
  )

  it("of a route moves the check of its rule to just before the handler", async () => {
    const app = await make({ rules: [] }, { limit: 1, window: "1 minute", hook: "handler" })
    app.get("/closed", {
      config: { rateLimit: { limit: 1, window: "1 minute", hook: "handler" } },
      preHandler: async (_request, reply) => reply.code(403).send(),
      handler: async () => "ok",
    })
    expect(await statuses(app, "a", "a")).toEqual([200, 429])
    const closed = []
    for (let i = 0; i < 3; i++) closed.push((await app.inject("/closed")).statusCode)
    expect(closed).toEqual([403, 403, 403])
  })
})

it("the plugin checks requests on arrival and warns if Fastify does not allow checks right before the handler", async () => {
  const warnings: string[] = []
  const log = (_fields: unknown, message: string) => void warnings.push(message)
  const app = fastify()
  apps.push(app)
  // Simulates a release of Fastify that stores the route's context elsewhere.
  app.addHook("onRequest", async (request) => {
    Object.defineProperty(request, "routeOptions", { value: { ...request.routeOptions, config: {} } })
  })
  await app.register(rateLimit, {
    clock,
    fields,
    rules: [{ ...user, onMissing: "ip" }],
    logger: { warn: log, error: log },
  } as RateLimitOptions)
  app.get("/", { preHandler: authenticate }, async () => "ok")
  expect(await statuses(app, "a", "b")).toEqual([200, 429])
  expect(warnings).toEqual([
    expect.stringContaining("does not let the limiter decide after every preHandler"),
  ])
})

describe("permits of rules that are checked at different steps", () => {
  const inFlight: Rule = { name: "in-flight", field: "ip", concurrent: 9 }
  const ofUser: Rule = { name: "in-flight-user", field: "user", concurrent: 1, onMissing: "skip" }
  const counted = async (app: FastifyInstance): Promise<unknown> => {
    const { limiter } = app.sluice
    const facts = { remoteAddress: "127.0.0.1" } as unknown as FastifyRequest
    const { checks } = await limiter.peek(facts, { rules: ["address", "in-flight"] })
    return [limiter.status.inFlight, ...checks.map(({ remaining }) => remaining)]
  }

  it("are all released when the response has closed", async () => {
    const app = await make({ rules: [address, inFlight, ofUser], refundWhen: () => false })
    const held: unknown[] = []
    app.get("/held", async () => held.push(app.sluice.limiter.status.inFlight))
    expect((await as(app, "a", { url: "/held" })).statusCode).toBe(200)
    expect(await statuses(app, "a", "a")).toEqual([200, 200])
    expect([held, await counted(app)]).toEqual([[1], [0, 6, 9]])
  })

  it("are released when a later step refuses the request, whose other units stay taken", async () => {
    const app = await make({ rules: [address, inFlight, user] })
    const held: number[] = []
    app.addHook("onSend", async () => void held.push(app.sluice.limiter.status.inFlight))
    expect(await statuses(app, "a", "a")).toEqual([200, 429])
    expect([held, await counted(app)]).toEqual([
      [1, 0],
      [0, 7, 9],
    ])
  })

  it("are released when a hook of the app responds between two steps", async () => {
    const app = await make({ rules: [address, inFlight, user] })
    app.addHook("preHandler", async (_request, reply) => reply.code(401).send("who?"))
    app.get("/late", async () => "ok")
    expect((await as(app, "a", { url: "/late" })).statusCode).toBe(401)
    expect(await counted(app)).toEqual([0, 8, 9])
  })
})
