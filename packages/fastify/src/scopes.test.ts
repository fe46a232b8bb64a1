import { createLimiter, memoryStore } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import fastify, { type FastifyInstance, type FastifyRequest } from "fastify"
import { describe, expect, it } from "vitest"
import * as module from "./index.ts"
import { type RateLimitOptions, rateLimit } from "./index.ts"

const clock = manualClock()
const rule = { clock, limit: 5, window: "1 minute" } as const
const strict = { limit: 2, window: "1 minute" } as const

async function quota(app: FastifyInstance, url: string): Promise<unknown> {
  return (await app.inject(url)).headers.ratelimit
}

describe("a plugin that is registered at the root", () => {
  it("limits routes in every scope, whether they are added before or after the plugin", async () => {
    const app = fastify()
    app.get("/before", async () => "ok")
    app.register(async (scope) => scope.get("/scope-before", async () => "ok"))
    app.register(rateLimit, rule)
    app.get("/after", async () => "ok")
    app.register(async (scope) => {
      scope.register(async (inner) => inner.get("/scope-after", async () => "ok"))
    })
    const left = []
    for (const url of ["/before", "/scope-before", "/after", "/scope-after"]) left.push(await quota(app, url))
    expect(left).toEqual([4, 3, 2, 1].map((r) => expect.stringMatching(`^"ip-1m";r=${r};t=`)))
  })

  it.each(["onRequest", "preHandler"] as const)("in %s, limits requests without a route", async (hook) => {
    for (const setHandler of ["never", "before", "after"] as const) {
      const app = fastify()
      const handler = () => "none"
      if (setHandler === "before") app.setNotFoundHandler(handler)
      app.register(rateLimit, { ...rule, ...strict, hook })
      if (setHandler === "after") app.setNotFoundHandler(handler)
      app.register(
        async (scope) => {
          if (setHandler === "after") scope.setNotFoundHandler(handler)
        },
        { prefix: "/scope" },
      )
      const statuses = []
      for (const url of ["/a", "/scope/b", "/c"]) statuses.push((await app.inject(url)).statusCode)
      const found = setHandler === "never" ? 404 : 200
      expect([setHandler, ...statuses]).toEqual([setHandler, found, found, 429])
    }
  })

  it.each(["onRequest", "preHandler"] as const)(
    "in %s, counts a request once if its handler calls the 404 handler",
    async (hook) => {
      const codes: string[] = []
      const log = ({ code }: { readonly code: string }) => void codes.push(code)
      const app = fastify()
      app.register(rateLimit, { ...rule, hook, logger: { warn: log, error: log } })
      app.get("/", (_request, reply) => void reply.callNotFound())
      app.get("/own", { config: { rateLimit: strict } }, (_request, reply) => void reply.callNotFound())
      const { statusCode, headers } = await app.inject("/")
      expect([statusCode, headers.ratelimit]).toEqual([404, '"ip-1m";r=4;t=61'])
      expect(await quota(app, "/own")).toBe('"GET /own";r=1;t=61')
      expect(await quota(app, "/")).toMatch('"ip-1m";r=3;')
      expect(codes).toEqual([])
    },
  )
})

it.each<[string, () => unknown]>([
  ["the promise of its module", () => import("./index.ts")],
  ["its module, as require() returns it", () => module],
  ["its default export", () => module.default],
])("the plugin can be registered as %s", async (_what, given) => {
  const app = fastify()
  await app.register(given() as typeof rateLimit, rule)
  app.get("/", async () => "ok")
  expect(await quota(app, "/")).toBe('"ip-1m";r=4;t=61')
})

describe("a plugin that is registered in a scope", () => {
  it("limits only that scope and its nested scopes", async () => {
    const app = fastify()
    app.register(async (scope) => {
      scope.register(rateLimit, rule)
      scope.get("/in", async () => "ok")
      scope.register(async (inner) => inner.get("/inner", async () => "ok"))
    })
    app.get("/out", async (request) => String(request.rateLimit))
    expect(await quota(app, "/in")).toMatch("r=4;")
    expect(await quota(app, "/inner")).toMatch("r=3;")
    const out = await app.inject("/out")
    expect([out.headers.ratelimit, out.body]).toEqual([undefined, "undefined"])
    expect(await quota(app, "/none")).toBeUndefined()
  })

  it("leaves the routes of other scopes to their own plugins", async () => {
    const app = fastify()
    app.register(async (scope) => {
      scope.register(rateLimit, { ...rule, name: "one" })
      scope.get("/one", { config: { rateLimit: strict } }, async () => "ok")
    })
    app.register(async (scope) => {
      scope.register(rateLimit, { ...rule, name: "other" })
      scope.get("/other", { config: { rateLimit: strict } }, async () => "ok")
    })
    app.get("/none", { config: { rateLimit: strict } }, async () => "ok")
    expect(await quota(app, "/one")).toBe('"GET /one";r=1;t=61')
    expect(await quota(app, "/other")).toBe('"GET /other";r=1;t=61')
    expect(await quota(app, "/none")).toBeUndefined()
  })
})

describe("a plugin that is registered twice", () => {
  const outer = { ...rule, name: "outer" }
  const inner = { ...rule, name: "inner", limit: 3 }

  describe.each(["newer", "older"] as const)(
    "applies a route's own rule, if the route is %s than the plugin,",
    (age) => {
      it.each(["outer first", "inner first"])("in the nearest scope: %s", async (order) => {
        // On a shared store, only one registration can create a rule of this name.
        const store = memoryStore({ clock })
        const app = fastify()
        const add = [
          () => app.register(rateLimit, { ...outer, store }),
          () =>
            app.register(async (scope) => {
              const registered = scope.register(rateLimit, { ...inner, store })
              if (age === "newer") await registered
              scope.get("/", { config: { rateLimit: strict } }, async () => "ok")
              scope.get("/out", { config: { rateLimit: false } }, async () => "ok")
            }),
        ]
        for (const step of order === "outer first" ? add : add.reverse()) await step()
        expect(
          String(await quota(app, "/"))
            .split(", ")
            .sort(),
        ).toEqual(['"GET /";r=1;t=61', '"outer";r=4;t=61'])
        expect(await quota(app, "/out")).toBeUndefined()
        await app.close()
      })

      it("in the first registration of one scope", async () => {
        // On a shared store, only one registration can create a rule of this name.
        const store = memoryStore({ clock })
        const app = fastify()
        const registered = [
          app.register(rateLimit, { ...outer, store }),
          app.register(rateLimit, { ...inner, store }),
        ]
        if (age === "newer") await Promise.all(registered)
        app.get("/", { config: { rateLimit: strict } }, async () => "ok")
        app.get("/out", { config: { rateLimit: false } }, async () => "ok")
        expect(await quota(app, "/")).toBe('"GET /";r=1;t=61, "inner";r=2;t=61')
        expect(await quota(app, "/out")).toBeUndefined()
        await app.close()
      })
    },
  )
})

describe("closing the app", () => {
  it("closes the limiter that the plugin created", async () => {
    const store = memoryStore({ clock })
    const app = fastify()
    app.register(rateLimit, { ...rule, store, name: "n" })
    await app.ready()
    const second = (): unknown => createLimiter({ ...rule, store, name: "n" })
    expect(second).toThrow(/another limiter already counts rule "n"/)
    await app.close()
    expect(second).not.toThrow()
  })

  it("releases the app's route rules on a shared limiter, so that the next app can use their names", async () => {
    const limiter = createLimiter<FastifyRequest>(rule)
    const make = async () => {
      const app = fastify()
      await app.register(rateLimit, { limiter })
      app.get("/", { config: { rateLimit: { ...strict } } }, async () => "ok")
      return app
    }
    const [http, https] = [await make(), await make()]
    expect([await quota(http, "/"), await quota(https, "/")]).toEqual([
      '"GET /";r=1;t=61',
      '"GET /";r=0;t=61',
    ])
    await http.close()
    const other = fastify()
    await other.register(rateLimit, { limiter })
    const add = () =>
      other.get("/", { config: { rateLimit: { limit: 4, window: "1 minute" } } }, async () => "ok")
    expect(add).toThrow('"GET /" is already the name of a different rule at another mount of this limiter')
    await Promise.all([other.close(), https.close()])
    const next = fastify()
    await next.register(rateLimit, { limiter })
    next.get("/", { config: { rateLimit: { limit: 4, window: "1 minute" } } }, async () => "ok")
    // Earlier units stay counted.
    expect(await quota(next, "/")).toBe('"GET /";r=1;t=61')
    await next.close()
    await limiter.close()
  })
})

it("the plugin prevents the start of an app that already has the decorator rateLimit", async () => {
  const app = fastify()
  app.decorateRequest("rateLimit", null as never)
  app.register(rateLimit, rule)
  await expect(app.ready()).rejects.toMatchObject({ code: "FST_ERR_DEC_ALREADY_PRESENT" })
})

describe("invalid options", () => {
  it.each([
    ["hook", { ...rule, hook: "onSend" }],
    ["hook", { limiter: createLimiter(rule), hook: "onsend" }],
    ["limit", { limit: 0, window: "1 minute" }],
    ["limit", { limiter: createLimiter(rule), limit: 5 }],
  ])("prevent the start of the app with an error about %s", async (path, options) => {
    const app = fastify()
    app.register(rateLimit, options as RateLimitOptions)
    await expect(app.ready()).rejects.toMatchObject({
      code: "SLUICE_INVALID_OPTION",
      problems: expect.arrayContaining([expect.objectContaining({ path })]),
    })
  })
})
