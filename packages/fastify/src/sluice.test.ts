import { createLimiter } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import fastify, { type FastifyInstance, type FastifyRequest, type InjectOptions } from "fastify"
import { describe, expect, it } from "vitest"
import { type HookName, rateLimit } from "./index.ts"

const clock = manualClock()
const plugin = { clock, limit: 9, window: "1 minute" } as const
const strict = { limit: 2, window: "1 minute" } as const
const handler = async () => "ok"

async function appWith(options: object = plugin): Promise<FastifyInstance> {
  const app = fastify()
  await app.register(rateLimit, options)
  return app
}

async function quota(app: FastifyInstance, url: string, how: InjectOptions = {}): Promise<unknown> {
  const { statusCode, headers } = await app.inject({ url, ...how })
  return statusCode === 429 ? 429 : headers.ratelimit
}

describe("app.sluice.limiter", () => {
  it("is the plugin's limiter, which can peek at and reset the plugin's counters", async () => {
    const app = await appWith()
    app.get("/", handler)
    app.get("/left", { config: { rateLimit: false } }, async (request) => {
      return String((await app.sluice.limiter.peek(request)).remaining)
    })
    await app.inject("/")
    expect((await app.inject("/left")).body).toBe("8")
    await app.sluice.limiter.reset({ remoteAddress: "127.0.0.1" })
    expect((await app.inject("/left")).body).toBe("9")
  })

  it("is the shared limiter that the app passed to the plugin", async () => {
    const limiter = createLimiter<FastifyRequest>(plugin)
    const app = await appWith({ limiter })
    expect(app.sluice.limiter).toBe(limiter)
    await app.close()
    await limiter.close()
  })

  it("reports decisions by the rules of routes and hooks, with a request that contains the route", async () => {
    const app = await appWith({ ...plugin, hook: "onRequest" })
    const told: unknown[] = []
    app.sluice.limiter.on("decision", ({ policy, allowed }, { routeOptions }) => {
      told.push([routeOptions.url, policy, allowed])
    })
    const preHandler = app.sluice.hook({ ...strict, limit: 1, name: "hook" })
    app.get("/own", { config: { rateLimit: { ...strict, limit: 1 } } }, handler)
    app.get("/hook", { preHandler }, handler)
    for (const url of ["/own", "/own", "/hook", "/hook", "/none"]) await app.inject(url)
    expect(told).toEqual([
      ["/own", "GET /own", true],
      ["/own", "GET /own", false],
      ["/hook", "ip-1m", true],
      ["/hook", "hook", true],
      ["/hook", "ip-1m", true],
      ["/hook", "hook", false],
      [undefined, "ip-1m", true],
    ])
  })
})

describe("app.sluice", () => {
  it("is the handle of the nearest registration", async () => {
    const app = await appWith({ ...plugin, name: "outer" })
    await app.register(async (scope) => {
      expect(scope.sluice).toBe(app.sluice)
      await scope.register(rateLimit, { ...plugin, name: "inner" })
      expect(scope.sluice).not.toBe(app.sluice)
      await scope.register(async (within) => expect(within.sluice).toBe(scope.sluice))
      scope.get("/", { preHandler: scope.sluice.hook(strict) }, handler)
    })
    expect(await quota(app, "/")).toBe('"outer";r=8;t=61, "inner";r=8;t=61, "hook-1";r=1;t=61')
    await app.close()
  })

  it("does not exist outside the scope of the plugin", async () => {
    const app = fastify()
    await app.register(async (scope) => {
      await scope.register(rateLimit, plugin)
      expect(scope.hasDecorator("sluice")).toBe(true)
    })
    expect(app.hasDecorator("sluice")).toBe(false)
    await app.register(async (sibling) => expect(sibling.sluice).toBeUndefined())
  })

  it("belongs to the first of two registrations in one scope", async () => {
    const app = await appWith({ ...plugin, name: "one" })
    const first = app.sluice
    await app.register(rateLimit, { ...plugin, name: "other" })
    expect(app.sluice).toBe(first)
    app.get("/", { preHandler: app.sluice.hook(strict) }, handler)
    expect(await quota(app, "/")).toBe('"one";r=8;t=61, "other";r=8;t=61, "hook-1";r=1;t=61')
  })
})

describe("a hook of app.sluice", () => {
  it.each(["onRequest", "preParsing", "preValidation", "preHandler"] as const)(
    "limits a route as the route's %s hook",
    async (name) => {
      const app = await appWith()
      app.post("/a", { [name]: app.sluice.hook(strict) }, async ({ body }) => body)
      app.post("/b", handler)
      const body = { method: "POST", payload: { some: "body" } } as const
      const { headers, body: told } = await app.inject({ url: "/a", ...body })
      expect([headers.ratelimit, told]).toEqual(['"ip-1m";r=8;t=61, "hook-1";r=1;t=61', '{"some":"body"}'])
      expect(await quota(app, "/a", body)).toContain('"hook-1";r=0;')
      expect(await quota(app, "/a", body)).toBe(429)
      expect(await quota(app, "/b", body)).toBe('"ip-1m";r=5;t=61')
    },
  )

  it("limits a scope and its nested scopes, except routes with rateLimit: false", async () => {
    const app = await appWith({ clock })
    app.register(async (scope) => {
      scope.addHook("preHandler", app.sluice.hook(strict))
      scope.get("/a", handler)
      scope.get("/health", { config: { rateLimit: false } }, handler)
      scope.register(async (inner) => inner.get("/b", handler))
    })
    app.get("/out", handler)
    expect(await quota(app, "/a")).toBe('"hook-1";r=1;t=61')
    expect(await quota(app, "/b")).toBe('"hook-1";r=0;t=61')
    expect(await quota(app, "/a")).toBe(429)
    for (const url of ["/health", "/out"]) expect(await quota(app, url)).toBeUndefined()
  })

  it("can count by a field of the app if it runs after an authentication hook", async () => {
    const users = new WeakMap<FastifyRequest, string>()
    const app = await appWith({ clock, fields: { user: (request: FastifyRequest) => users.get(request) } })
    const authenticate = async (request: FastifyRequest) => {
      users.set(request, String(request.headers.user))
    }
    const perUser = app.sluice.hook({ ...strict, field: "user", onMissing: "deny" })
    app.get("/", { preHandler: [authenticate, perUser] }, handler)
    const ask = (user: string) => quota(app, "/", { headers: { user } })
    const statuses = [await ask("a"), await ask("a"), await ask("a"), await ask("b")]
    expect(statuses).toEqual(['"hook-1";r=1;t=61', '"hook-1";r=0;t=61', 429, '"hook-1";r=1;t=61'])
  })

  it("applies only its own rule, so that the plugin's rules count a request once", async () => {
    const rules = [
      { name: "all", field: "service", limit: 9, window: "1 minute" },
      { name: "user", field: "user", limit: 9, window: "1 minute" },
    ]
    const app = await appWith({ clock, rules, fields: { user: () => "u" } })
    app.get("/", { onRequest: app.sluice.hook(strict) }, async (request) => {
      const { checks } = await app.sluice.limiter.peek(request)
      return [request.rateLimit, ...checks].map((told) => `${told?.policy} ${told?.remaining}`)
    })
    const { headers, body } = await app.inject("/")
    expect(headers["ratelimit-policy"]).toBe('"all";q=9;w=60, "user";q=9;w=60, "hook-1";q=2;w=60')
    expect(JSON.parse(body)).toEqual(["hook-1 1", "all 8", "user 8"])
  })

  it("counts a request once, even if its handler passes it to a 404 handler with the same hook", async () => {
    const codes: string[] = []
    const log = ({ code }: { readonly code: string }) => void codes.push(code)
    const app = await appWith({ clock, logger: { warn: log, error: log } })
    app.addHook("preHandler", app.sluice.hook(strict))
    app.get("/", (_request, reply) => void reply.callNotFound())
    expect(await quota(app, "/")).toBe('"hook-1";r=1;t=61')
    expect(await quota(app, "/none")).toBe('"hook-1";r=0;t=61')
    expect(await quota(app, "/")).toBe(429)
    expect(codes).toEqual([])
  })

  it("limits a 404 handler, in addition to the plugin's rules", async () => {
    const app = await appWith()
    app.setNotFoundHandler({ preHandler: app.sluice.hook(strict) }, (_request, reply) => {
      reply.code(404).send("none")
    })
    app.get("/", handler)
    expect(await quota(app, "/a")).toBe('"ip-1m";r=8;t=61, "hook-1";r=1;t=61')
    expect(await quota(app, "/b")).toContain('"hook-1";r=0;')
    expect(await quota(app, "/c")).toBe(429)
    // The refused request has taken a unit from the plugin's rule, because this rule was checked before the hook.
    expect(await quota(app, "/")).toBe('"ip-1m";r=5;t=61')
  })
})

describe("the counters of hooks", () => {
  it("are separate, with names in the order of creation", async () => {
    const app = await appWith({ clock })
    const [a, b] = [app.sluice.hook(strict), app.sluice.hook({ ...strict, name: "own" })]
    app.get("/a", { preHandler: a }, handler)
    app.get("/b", { preHandler: b }, handler)
    app.get("/c", { preHandler: app.sluice.hook(strict) }, handler)
    app.get("/again", { preHandler: a }, handler)
    expect(await quota(app, "/a")).toBe('"hook-1";r=1;t=61')
    expect(await quota(app, "/b")).toBe('"own";r=1;t=61')
    expect(await quota(app, "/c")).toBe('"hook-3";r=1;t=61')
    expect(await quota(app, "/again")).toBe('"hook-1";r=0;t=61')
  })

  it("are one shared counter for all hooks and routes in a group", async () => {
    const app = await appWith({ clock })
    const auth = { ...strict, limit: 3, group: "auth" }
    app.get("/a", { preHandler: app.sluice.hook(auth) }, handler)
    app.get("/b", { preHandler: app.sluice.hook({ ...auth }) }, handler)
    app.get("/c", { config: { rateLimit: auth } }, handler)
    app.get("/d", { config: { rateLimit: auth }, preHandler: app.sluice.hook(auth) }, handler)
    for (const [url, left] of [
      ["/a", 2],
      ["/b", 1],
      ["/c", 0],
    ]) {
      expect(await quota(app, String(url))).toBe(`"auth";r=${left};t=61`)
    }
    expect(await quota(app, "/a")).toBe(429)
    await app.sluice.limiter.reset({ remoteAddress: "127.0.0.1" })
    expect(await quota(app, "/d")).toBe('"auth";r=2;t=61')
  })

  it("are separate for two registrations", async () => {
    const app = fastify()
    for (const path of ["/a", "/b"]) {
      app.register(async (scope) => {
        await scope.register(rateLimit, { clock })
        scope.get(path, { preHandler: scope.sluice.hook(strict) }, handler)
      })
    }
    for (const path of ["/a", "/b"]) expect(await quota(app, path)).toBe('"hook-1";r=1;t=61')
  })
})

describe("app.sluice.hook()", () => {
  const accepted = 'accepted: a rule such as { limit: 5, window: "1 minute" }'
  it.each<[string, unknown, string]>([
    ["without a rule", undefined, `app.sluice.hook(): undefined is not a rule; ${accepted}`],
    [
      "with a rule that contains a hook",
      { ...strict, hook: "preHandler" },
      'app.sluice.hook().hook: "hook" is not a member of a rule',
    ],
    [
      "with the name of another hook's rule",
      { ...strict, name: "h" },
      ".name: 'h' is already the name of the rule of app.sluice.hook() \"hook-1\"; ",
    ],
  ])("throws when it is called %s", async (_how, written, message) => {
    const app = await appWith({ ...plugin, name: "p" })
    app.get("/n", { config: { rateLimit: { ...strict, name: "n" } } }, handler)
    app.sluice.hook({ ...strict, name: "h" })
    app.sluice.hook({ ...strict, group: "g" })
    expect(() => app.sluice.hook(written as typeof strict)).toThrow(message)
    await app.close()
  })

  it("throws after the app has started", async () => {
    const app = await appWith()
    app.get("/", async () => app.sluice.hook(strict))
    const { statusCode, body } = await app.inject("/")
    expect(statusCode).toBe(500)
    expect(JSON.parse(body).message).toMatch(
      /app\.sluice\.hook\(\): was called after the app has started; accepted: to call it once, before/,
    )
  })
})

it.each<HookName>(["preHandler", "handler"])(
  "a hook of app.sluice in onRequest runs before the plugin's check in %s",
  async (hook) => {
    const app = await appWith({ ...plugin, hook })
    app.get("/", { onRequest: app.sluice.hook(strict) }, handler)
    expect(await quota(app, "/")).toBe('"hook-1";r=1;t=61, "ip-1m";r=8;t=61')
  },
)
