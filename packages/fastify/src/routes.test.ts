import { manualClock } from "@sluice/core/testing"
import fastify, { type FastifyInstance, type InjectOptions, type RouteOptions } from "fastify"
import { describe, expect, it } from "vitest"
import { rateLimit } from "./index.ts"
import { routeLabel } from "./routes.ts"

const clock = manualClock()
const plugin = { clock, limit: 5, window: "1 minute" } as const
const strict = { limit: 2, window: "1 minute" } as const

async function quota(app: FastifyInstance, url: string, how: InjectOptions = {}): Promise<unknown> {
  const { statusCode, headers } = await app.inject({ url, ...how })
  return statusCode === 429 ? 429 : headers.ratelimit
}

/** Creates an app whose routes are added before or after the plugin has run. */
async function appWith(
  when: "before" | "after",
  add: (app: FastifyInstance) => void,
  options: object = plugin,
) {
  const app = fastify()
  if (when === "after") await app.register(rateLimit, options)
  else app.register(rateLimit, options)
  add(app)
  return app
}

describe.each(["before", "after"] as const)("a route that is added %s the plugin has run", (when) => {
  it("uses its own rule and counter instead of the plugin's rule", async () => {
    const app = await appWith(when, (app) => {
      app.get("/", async () => "ok")
      app.get("/a", { config: { rateLimit: strict } }, async () => "ok")
      app.get("/b", { config: { rateLimit: strict } }, async () => "ok")
    })
    expect(await quota(app, "/a")).toBe('"GET /a";r=1;t=61')
    expect(await quota(app, "/a")).toBe('"GET /a";r=0;t=61')
    expect(await quota(app, "/a")).toBe(429)
    // Two routes that share an options object do not form a group.
    expect(await quota(app, "/b")).toBe('"GET /b";r=1;t=61')
    expect(await quota(app, "/")).toBe('"ip-1m";r=4;t=61')
  })

  it("may limit the requests that are in progress", async () => {
    const app = await appWith(when, (app) => {
      app.get("/a", { config: { rateLimit: { concurrent: 3 } } }, async ({ rateLimit: decision }) => {
        return { policy: decision?.policy, unit: decision?.checks[0]?.unit, remaining: decision?.remaining }
      })
    })
    const { body } = await app.inject("/a")
    expect(JSON.parse(body)).toEqual({ policy: "GET /a", unit: "concurrent-requests", remaining: 2 })
  })

  it("is not limited and gets no headers with rateLimit: false", async () => {
    const app = await appWith(when, (app) => {
      app.get("/health", { config: { rateLimit: false } }, async (request) => String(request.rateLimit))
      app.get("/", async () => "ok")
    })
    for (let i = 0; i < 9; i++) {
      const { statusCode, headers, body } = await app.inject("/health")
      expect({ statusCode, body, told: headers.ratelimit ?? headers["ratelimit-policy"] }).toEqual({
        statusCode: 200,
        body: "undefined",
        told: undefined,
      })
    }
    expect(await quota(app, "/")).toBe('"ip-1m";r=4;t=61')
  })

  it("shares one counter with the routes of its group", async () => {
    const auth = { ...strict, group: "auth" }
    const app = await appWith(when, (app) => {
      app.post("/login", { config: { rateLimit: auth } }, async () => "ok")
      app.post("/reset", { config: { rateLimit: { ...auth } } }, async () => "ok")
      app.get("/", async () => "ok")
    })
    expect(await quota(app, "/login", { method: "POST" })).toBe('"auth";r=1;t=61')
    expect(await quota(app, "/reset", { method: "POST" })).toBe('"auth";r=0;t=61')
    expect(await quota(app, "/login", { method: "POST" })).toBe(429)
    expect(await quota(app, "/reset", { method: "POST" })).toBe(429)
    expect(await quota(app, "/")).toBe('"ip-1m";r=4;t=61')
  })

  it("shares its quota with the HEAD route that Fastify adds", async () => {
    const app = await appWith(when, (app) => {
      app.get("/a", { config: { rateLimit: strict } }, async () => "ok")
      app.get("/b", async () => "ok")
    })
    expect(await quota(app, "/a")).toBe('"GET /a";r=1;t=61')
    expect(await quota(app, "/a", { method: "HEAD" })).toBe('"GET /a";r=0;t=61')
    const refused = await app.inject({ method: "HEAD", url: "/a" })
    expect([refused.statusCode, refused.body]).toEqual([429, ""])
    expect(await quota(app, "/a")).toBe(429)
    expect(await quota(app, "/b")).toBe('"ip-1m";r=4;t=61')
    expect(await quota(app, "/b", { method: "HEAD" })).toBe('"ip-1m";r=3;t=61')
  })

  it("shares the counter with both HEAD routes that Fastify adds at the root of a prefix", async () => {
    const app = await appWith(when, (app) => {
      app.register(
        async (scope) => {
          scope.get("/", { config: { rateLimit: { ...strict, name: "users" } } }, async () => "ok")
        },
        { prefix: "/users" },
      )
    })
    expect(await quota(app, "/users")).toBe('"users";r=1;t=61')
    expect(await quota(app, "/users/", { method: "HEAD" })).toBe('"users";r=0;t=61')
    expect(await quota(app, "/users", { method: "HEAD" })).toBe(429)
    expect(await quota(app, "/users/", { method: "HEAD" })).toBe(429)
  })

  it("does not share a counter with the route that has a trailing slash, even for HEAD requests", async () => {
    const app = await appWith(when, (app) => {
      for (const url of ["/a", "/a/"]) {
        app.get(url, { config: { rateLimit: strict } }, async () => "ok")
      }
    })
    expect(await quota(app, "/a")).toBe('"GET /a";r=1;t=61')
    expect(await quota(app, "/a/")).toBe('"GET /a/";r=1;t=61')
    expect(await quota(app, "/a/", { method: "HEAD" })).toBe('"GET /a/";r=0;t=61')
    expect(await quota(app, "/a", { method: "HEAD" })).toBe('"GET /a";r=0;t=61')
  })

  it("can have another rule for HEAD and other methods than for GET on the same path", async () => {
    const app = await appWith(when, (app) => {
      app.route({
        method: "GET",
        url: "/a",
        exposeHeadRoute: false,
        config: { rateLimit: strict },
        handler: async () => "ok",
      })
      app.route({
        method: ["HEAD", "POST"],
        url: "/a",
        config: { rateLimit: { ...strict, limit: 3, name: "others" } },
        handler: async () => "ok",
      })
      app.head("/a/", { config: { rateLimit: { ...strict, limit: 4, name: "slash" } } }, async () => "ok")
    })
    expect(await quota(app, "/a")).toBe('"GET /a";r=1;t=61')
    expect(await quota(app, "/a", { method: "POST" })).toBe('"others";r=2;t=61')
    expect(await quota(app, "/a", { method: "HEAD" })).toBe('"others";r=1;t=61')
    expect(await quota(app, "/a/", { method: "HEAD" })).toBe('"slash";r=3;t=61')
  })

  it("uses one counter for its pattern, including the prefix and the trailing slash", async () => {
    const app = await appWith(when, (app) => {
      app.register(
        async (scope) => {
          scope.get("/", { config: { rateLimit: strict } }, async () => "ok")
          scope.get("/:id", { config: { rateLimit: strict } }, async () => "ok")
        },
        { prefix: "/users" },
      )
    })
    expect(await quota(app, "/users/1")).toBe('"GET /users/:id";r=1;t=61')
    expect(await quota(app, "/users/2")).toBe('"GET /users/:id";r=0;t=61')
    expect(await quota(app, "/users")).toBe('"GET /users";r=1;t=61')
    expect(await quota(app, "/users/")).toBe('"GET /users";r=0;t=61')
  })
})

describe("a route that is added after the plugin has run", () => {
  it("has a separate counter for each of its constraints", async () => {
    const app = fastify()
    await app.register(rateLimit, plugin)
    for (const version of ["1.0.0", "2.0.0"]) {
      app.get("/a", { constraints: { version }, config: { rateLimit: strict } }, async () => "ok")
    }
    const ask = (version: string) => quota(app, "/a", { headers: { "accept-version": version } })
    expect(await ask("1.0.0")).toContain(";r=1;")
    expect(await ask("2.0.0")).toContain(";r=1;")
    expect(await ask("1.0.0")).toContain(";r=0;")
  })

  it.each<[string, unknown, RegExp]>([
    [
      "a valid limit",
      { limit: 0, window: 1000 },
      /: route POST \/a config\.rateLimit\.limit: 0 is not a limit; /,
    ],
    [
      "a valid hook",
      { ...strict, hook: "onSend" },
      /\.hook: 'onSend' is not a hook; accepted: "onRequest", "preP/,
    ],
    [
      "the same rule as its GET route",
      { ...strict, limit: 3 },
      /: route GET \/h config\.rateLimit: differs from the existing rule for the same route; accepted: the same rule as route GET \/h, or/,
    ],
    [
      "a name that the plugin does not have",
      { ...strict, name: "p" },
      /rateLimit\.name: another limiter already counts rule "p"/,
    ],
  ])("throws immediately unless its config contains %s", async (noun, written, message) => {
    const app = fastify()
    await app.register(rateLimit, { ...plugin, name: "p" })
    const handler = async () => "ok"
    app.post("/g", { config: { rateLimit: { ...strict, group: "g" } } }, handler)
    app.get("/n", { config: { rateLimit: { ...strict, name: "n" } } }, handler)
    app.get("/h", { config: { rateLimit: strict }, exposeHeadRoute: false }, handler)
    const config = { rateLimit: written } as RouteOptions["config"] & object
    const [method, url] = noun.includes("GET") ? ["HEAD", "/h"] : ["POST", "/a"]
    expect(() => app.route({ method, url, config, handler })).toThrow(message)
    // The rejected route has not registered the name, so a route with the right group can use it.
    app.post("/a", { config: { rateLimit: { ...strict, group: "g" } } }, handler)
    expect(await quota(app, "/a", { method: "POST" })).toBe('"g";r=1;t=61')
    await app.close()
  })
})

describe("a route that is older than the plugin", () => {
  const warnings: string[] = []
  const log = ({ code }: { readonly code: string }, message: string) =>
    void warnings.push(`${code} ${message}`)
  const wrong = { rateLimit: { limit: 0, window: 1000 } }

  it("causes one warning if its rule is invalid, and uses the plugin's rule", async () => {
    warnings.length = 0
    const app = fastify()
    app.register(rateLimit, { ...plugin, logger: { warn: log, error: log } })
    app.get("/a", { config: wrong, exposeHeadRoute: false }, async () => "ok")
    expect(await quota(app, "/a")).toBe('"ip-1m";r=4;t=61')
    expect(await quota(app, "/a")).toMatch('"ip-1m";r=3;')
    expect(warnings).toEqual([
      expect.stringMatching(
        /^SLUICE_INVALID_OPTION Wrong options: route GET \/a config\.rateLimit\.limit: 0 is not/,
      ),
    ])
    await app.close()
  })

  it("is checked in its own hook without a warning, along with routes that are newer than the plugin", async () => {
    warnings.length = 0
    const app = fastify()
    const options = { ...plugin, logger: { warn: log, error: log } }
    const handler = async () => "ok"
    const late = { ...strict, hook: "preHandler" } as const
    app.get("/older", { config: { rateLimit: late } }, handler)
    await app.register(rateLimit, options)
    app.get("/newer", { config: { rateLimit: late } }, handler)
    app.get("/plain", handler)
    expect(await quota(app, "/older")).toBe('"GET /older";r=1;t=61')
    expect(await quota(app, "/newer")).toBe('"GET /newer";r=1;t=61')
    expect(await quota(app, "/plain")).toBe('"ip-1m";r=4;t=61')
    expect(await quota(app, "/none")).toMatch('"ip-1m";r=3;')
    expect(await quota(app, "/older")).toBe('"GET /older";r=0;t=61')
    expect(warnings).toEqual([])
    await app.close()
  })

  it("uses one counter at the root of a prefix, even if a HEAD route is requested first", async () => {
    const app = fastify()
    const own = { config: { rateLimit: { ...strict, name: "users" } } }
    app.register(async (scope) => scope.get("/", own, async () => "ok"), { prefix: "/users" })
    app.register(rateLimit, { ...plugin, logger: { warn: log, error: log } })
    warnings.length = 0
    expect(await quota(app, "/users/", { method: "HEAD" })).toBe('"users";r=1;t=61')
    expect(await quota(app, "/users")).toBe('"users";r=0;t=61')
    expect(await quota(app, "/users", { method: "HEAD" })).toBe(429)
    expect(await quota(app, "/users/")).toBe(429)
    expect(warnings).toEqual([])
    await app.close()
  })

  it.each(["HEAD", "POST", "GET"] as const)(
    "has the same counter name, even if %s is requested first",
    async (method) => {
      const app = fastify()
      const handler = async () => "ok"
      app.route({ method: ["GET", "POST"], url: "/a", config: { rateLimit: strict }, handler })
      app.register(rateLimit, plugin)
      expect(await quota(app, "/a", { method })).toBe('"GET /a";r=1;t=61')
      await app.close()
    },
  )

  it("shares a counter with a route that differs only in constraints", async () => {
    const app = fastify()
    app.register(rateLimit, plugin)
    for (const version of ["1.0.0", "2.0.0"]) {
      app.get("/a", { constraints: { version }, config: { rateLimit: strict } }, async () => "ok")
    }
    const ask = (version: string) => quota(app, "/a", { headers: { "accept-version": version } })
    expect(await ask("1.0.0")).toContain(";r=1;")
    expect(await ask("2.0.0")).toContain(";r=0;")
    await app.close()
  })
})

describe("a plugin without a rule", () => {
  it("counts only requests to routes that have their own rule", async () => {
    const app = fastify()
    app.register(rateLimit, {})
    app.get("/", async () => "ok")
    app.get("/a", { config: { rateLimit: strict } }, async () => "ok")
    expect(await quota(app, "/")).toBeUndefined()
    expect(await quota(app, "/a")).toMatch('"GET /a";r=1;')
    await app.close()
  })
})

const route = (method: string | string[], url: string, constraints?: object) =>
  ({ method, url, handler: () => undefined, ...(constraints && { constraints }) }) as RouteOptions

describe("a route's label", () => {
  it.each([
    ["GET /users/:id", route("GET", "/users/:id")],
    ["GET /", route("HEAD", "/")],
    ["GET /", route(["HEAD", "GET"], "/")],
    ["GET,POST /", route(["POST", "GET"], "/")],
    ["GET,POST /", route(["GET", "POST", "HEAD"], "/")],
    ["GET /", route("GET", "/", {})],
    ["GET / { host: /a/, version: '1.0.0' }", route("GET", "/", { version: "1.0.0", host: /a/ })],
  ])("is %s", (label, options) => {
    expect(routeLabel(options)).toBe(label)
  })
})
