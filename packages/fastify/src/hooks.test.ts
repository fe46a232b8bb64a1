import { type AddressInfo, connect } from "node:net"
import { createLimiter } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { liveRules, type RuleSource } from "@sluice/rules"
import fastify, { type FastifyInstance, type FastifyRequest, type InjectOptions } from "fastify"
import { describe, expect, it } from "vitest"
import { type RateLimitOptions, type RouteRateLimit, rateLimit } from "./index.ts"

const HOOKS = ["onRequest", "preParsing", "preValidation", "preHandler"] as const
type Hook = (typeof HOOKS)[number]

const base = { clock: manualClock() }
const rule = { ...base, limit: 1, window: "1 minute" } as const
const POST: InjectOptions = { method: "POST", url: "/", payload: { account: "a" } }

/** Returns the hook that refuses a request, for a route that is newer or older than the plugin. */
async function refusedIn(
  age: "newer" | "older",
  options: RateLimitOptions,
  own?: RouteRateLimit,
): Promise<Hook | undefined> {
  const app = fastify()
  const ran: Hook[] = []
  for (const hook of HOOKS) {
    app.addHook(hook as "onRequest", async () => {
      ran.push(hook)
    })
  }
  const registered = app.register(rateLimit, options)
  if (age === "newer") await registered
  app.post("/", { config: own === undefined ? {} : { rateLimit: own } }, async () => "ok")
  expect((await app.inject(POST)).statusCode).toBe(200)
  expect(ran).toEqual(HOOKS)
  ran.length = 0
  expect((await app.inject(POST)).statusCode).toBe(429)
  await app.close()
  return ran.at(-1)
}

const source: RuleSource = {
  load: async () => ({ rules: [{ limit: 1, window: "1 minute", field: "ip" }], problems: [] }),
}
const body = { field: "body:account" } as const

describe.each(["newer", "older"] as const)("a request to a route that is %s than the plugin", (age) => {
  const plugins: readonly (readonly [Hook, string, RateLimitOptions])[] = [
    ["onRequest", "a rule on the address", rule],
    ["preHandler", "a rule on the body", { ...rule, ...body }],
    ["preHandler", "a field of the app", { ...rule, field: "user", fields: { user: () => "u" } }],
    ["preHandler", "a function of its unit", { ...rule, counts: "tokens", units: { tokens: () => 1 } }],
    ["onRequest", "a number of its unit", { ...rule, counts: "tokens", units: { tokens: 1 } }],
    ["preHandler", "a limit of the app", { ...rule, limit: () => 1 }],
    [
      "onRequest",
      "a rule on the address from a source",
      { ...base, rules: liveRules(source), onRulesMissing: "allow" },
    ],
    [
      "preValidation",
      "a rule on the body, if the app sets that hook",
      { ...rule, ...body, hook: "preValidation" },
    ],
    [
      "onRequest",
      "a limit of the app, if the app sets that hook",
      { ...rule, limit: () => 1, hook: "onRequest" },
    ],
    ["preParsing", "a rule on the address, if the app sets that hook", { ...rule, hook: "preParsing" }],
    ["preHandler", "a rule on the address, if the app sets that hook", { ...rule, hook: "preHandler" }],
  ]
  it.each(plugins)("is refused in %s by %s", async (hook, _why, options) => {
    expect(await refusedIn(age, options)).toBe(hook)
  })

  const own = { limit: 1, window: "1 minute" } as const
  const routes: readonly (readonly [Hook, string, RateLimitOptions, RouteRateLimit])[] = [
    ["onRequest", "a route's rule on the address", { ...rule, limit: 9 }, own],
    ["onRequest", "a route's rule if the plugin has none", base, own],
    ["preHandler", "a route's rule on the body", { ...rule, limit: 9 }, { ...own, ...body }],
    ["preHandler", "a route's rule on the body if the plugin has none", base, { ...own, ...body }],
    [
      "onRequest",
      "a route's rule on the address, instead of the plugin's rule on the body",
      { ...rule, limit: 9, ...body },
      own,
    ],
    [
      "preValidation",
      "a route's rule on the body, if the route sets that hook",
      rule,
      { ...own, ...body, hook: "preValidation" },
    ],
    [
      "preParsing",
      "a route's rule on the address, if the route sets that hook",
      rule,
      { ...own, hook: "preParsing" },
    ],
    [
      "onRequest",
      "a route's rule beside the plugin's rule on the body, if the route sets that hook",
      { ...rule, ...body },
      { ...own, hook: "onRequest" },
    ],
    [
      "preValidation",
      "a route's rule, if the route sets that hook and the plugin another hook",
      { ...rule, hook: "preParsing" },
      { ...own, hook: "preValidation" },
    ],
    [
      "preValidation",
      "a route's rule on the body, if the plugin sets that hook",
      { ...rule, hook: "preValidation" },
      { ...own, ...body },
    ],
  ]
  it.each(routes)("is refused in %s by %s", async (hook, _why, options, written) => {
    expect(await refusedIn(age, options, written)).toBe(hook)
  })
})

describe.each(["newer", "older"] as const)("the hooks of a route that is %s than the plugin", (age) => {
  it("run after the limit is checked, whether the route has one hook or several", async () => {
    for (const several of [false, true]) {
      const ran: string[] = []
      const note = (name: string) => async () => {
        ran.push(name)
      }
      const app = fastify()
      const registered = app.register(rateLimit, base)
      if (age === "newer") await registered
      app.post(
        "/",
        {
          config: { rateLimit: { limit: 1, window: "1 minute", ...body } },
          preHandler: several ? [note("one"), note("two")] : note("one"),
        },
        async () => "ok",
      )
      expect((await app.inject(POST)).statusCode).toBe(200)
      expect(ran).toEqual(several ? ["one", "two"] : ["one"])
      ran.length = 0
      expect((await app.inject(POST)).statusCode).toBe(429)
      expect(ran).toEqual([])
    }
  })
})

describe("a rule on the body", () => {
  const schema = { body: { type: "object", properties: { account: { type: "string" } } } }

  /**
   * Returns the account that the handler receives, and the statuses for a client that spells the account in two ways.
   */
  async function guesses(options: RateLimitOptions): Promise<readonly unknown[]> {
    const app = fastify()
    app.register(rateLimit, options)
    app.post("/", { schema }, async (request) => (request.body as { account: unknown }).account)
    const answers = []
    for (const account of ["bob", ["bob"], "bob", ["bob"]]) {
      const { statusCode, body } = await app.inject({ method: "POST", url: "/", payload: { account } })
      answers.push(statusCode === 200 ? body : statusCode)
    }
    await app.close()
    return answers
  }

  it("counts the value that the handler receives after validation has converted it", async () => {
    expect(await guesses({ ...rule, ...body, limit: 2 })).toEqual(["bob", "bob", 429, 429])
  })

  it('with onMissing "deny", refuses a value that is not a string if it is checked before validation', async () => {
    const early = { ...rule, ...body, limit: 2, hook: "preValidation", onMissing: "deny" } as const
    expect(await guesses(early)).toEqual(["bob", 400, "bob", 400])
  })
})

describe("a request that Fastify itself rejects", () => {
  it("is not counted if the URL cannot be decoded", async () => {
    const app = fastify()
    app.register(rateLimit, { ...rule, limit: 2 })
    app.get("/:id", async () => "ok")
    await app.listen({ port: 0, host: "127.0.0.1" })
    expect(await rawStatus(app, "/%zz")).toBe(400)
    const { headers } = await app.inject("/1")
    expect(headers.ratelimit).toBe('"ip-1m";r=1;t=61')
    await app.close()
  })

  it("is not counted if its body cannot be parsed, unless the rule is checked before parsing", async () => {
    const bad: InjectOptions = { ...POST, headers: { "content-type": "application/json" }, payload: "{" }
    for (const [hook, left] of [
      ["preHandler", 2],
      ["preValidation", 2],
      ["onRequest", 1],
      ["preParsing", 1],
    ] as const) {
      const app = fastify()
      app.register(rateLimit, { ...rule, limit: 3, hook })
      app.post("/", async () => "ok")
      expect((await app.inject(bad)).statusCode).toBe(400)
      expect((await app.inject(POST)).headers.ratelimit).toMatch(`"ip-1m";r=${left};`)
    }
  })

  it("is not counted if the schema rejects it, unless the rule is checked before validation", async () => {
    for (const [hook, left] of [
      ["preHandler", undefined],
      ["preValidation", 2],
    ] as const) {
      const app = fastify()
      app.register(rateLimit, { ...rule, limit: 3, hook })
      app.post("/", { schema: { body: { type: "object", required: ["email"] } } }, async () => "ok")
      const { statusCode, headers } = await app.inject({ method: "POST", url: "/", payload: {} })
      expect(statusCode).toBe(400)
      expect(headers.ratelimit?.toString().slice(0, 11)).toBe(left && `"ip-1m";r=${left}`)
    }
  })
})

describe("a plugin that is called like middleware of other frameworks", () => {
  it.each([rule, undefined])("throws, and the error explains how to register it", (given) => {
    expect(() => (rateLimit as (options?: object) => unknown)(given)).toThrow(
      'so it must be registered and not called; accepted: app.register(rateLimit, { limit: 100, window: "1 minute" })',
    )
  })
})

describe("the plugin's limiter", () => {
  it("ignores the address that Fastify's trustProxy reads from a header", async () => {
    const app = fastify({ trustProxy: true })
    app.register(rateLimit, rule)
    app.get("/", async ({ ip }) => ip)
    const as = (address: string) => app.inject({ url: "/", headers: { "x-forwarded-for": address } })
    expect((await as("192.0.2.1")).body).toBe("192.0.2.1")
    expect((await as("192.0.2.2")).statusCode).toBe(429)
  })

  it("ignores the path that Fastify's rewriteUrl returns", async () => {
    const app = fastify({ rewriteUrl: ({ url = "" }) => url.replace("/api", "") })
    app.register(rateLimit, { ...rule, match: { path: "/api/login" } })
    app.get("/login", async ({ url }) => url)
    const answer = await app.inject("/api/login")
    expect([answer.statusCode, answer.body]).toEqual([200, "/login"])
    expect((await app.inject("/login")).statusCode).toBe(200)
    expect((await app.inject("/api/login")).statusCode).toBe(429)
  })
})

describe("a request that the app has changed", () => {
  it("is counted by the changed query", async () => {
    const querystringParser = () => ({ key: "always the same" })
    const app = fastify({ routerOptions: { querystringParser } })
    app.register(rateLimit, { ...rule, field: "query:key", onMissing: "deny" })
    app.get("/", async () => "ok")
    expect((await app.inject("/?key=a")).statusCode).toBe(200)
    expect((await app.inject("/?key=b")).statusCode).toBe(429)
  })

  it("is counted by the cookies that a cookie parser has set", async () => {
    const app = fastify()
    app.decorateRequest("cookies", null as never)
    app.addHook("onRequest", async (request) => {
      Object.assign(request, { cookies: { session: (request.query as { as?: string }).as } })
    })
    app.register(rateLimit, { ...rule, field: "cookie:session", onMissing: "deny" })
    const statuses = []
    for (const url of ["/?as=a", "/?as=a", "/?as=b", "/"]) statuses.push((await app.inject(url)).statusCode)
    expect(statuses).toEqual([404, 429, 404, 400])
  })
})

describe("a limiter that the app calls directly", () => {
  it("accepts Fastify's request", async () => {
    const limiter = createLimiter<FastifyRequest>({
      ...rule,
      limit: 3,
      field: ["ip", "route"],
      onMissing: "deny",
    })
    const app = fastify()
    app.register(rateLimit, { limiter })
    app.get("/:id", async (request) => (await limiter.peek(request)).remaining)
    expect((await app.inject("/1")).body).toBe("2")
    expect((await app.inject("/2")).body).toBe("1")
  })

  it("accepts plain facts that share a member with Fastify's request", async () => {
    const limiter = createLimiter<object>({ ...rule, onMissing: "deny" })
    const app = fastify()
    app.register(rateLimit, { limiter })
    await app.ready()
    for (const member of [{ routeOptions: {} }, { raw: {} }]) {
      expect((await limiter.peek({ ...member, remoteAddress: "192.0.2.1" })).allowed).toBe(true)
    }
  })

  it("accepts a request without a connection", async () => {
    const warnings: string[] = []
    const log = ({ code }: { readonly code: string }): void => void warnings.push(code)
    const logger = { warn: log, error: log }
    const limiter = createLimiter<object>({ ...rule, onMissing: "deny", logger })
    const app = fastify()
    app.register(rateLimit, { limiter })
    await app.ready()
    const request = { raw: {}, routeOptions: {}, headers: {} }
    expect((await limiter.peek(request)).refusal).toBe("missing-field")
    expect(warnings).toEqual(["SLUICE_ADDRESS_UNKNOWN"])
  })
})

/** Returns the status for a request line that client libraries would not send. */
function rawStatus(app: FastifyInstance, target: string): Promise<number> {
  const { port } = app.server.address() as AddressInfo
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1")
    socket.once("error", reject)
    socket.once("data", (data) => {
      socket.destroy()
      resolve(Number(data.toString().split(" ")[1]))
    })
    socket.write(`GET ${target} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
  })
}
