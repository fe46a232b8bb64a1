import { manualClock } from "@sluice/core"
import fastify, { type FastifyInstance, type InjectOptions, type RouteOptions } from "fastify"
import { describe, expect, it } from "vitest"
import { rateLimit } from "./index.ts"

const clock = manualClock()
const plugin = { clock, limit: 5, window: "1 minute" } as const
const strict = { limit: 2, window: "1 minute" } as const

async function quota(app: FastifyInstance, url: string, how: InjectOptions = {}): Promise<unknown> {
  const { statusCode, headers } = await app.inject({ url, ...how })
  return statusCode === 429 ? 429 : headers.ratelimit
}

/** The app, its routes added before or after the plugin has run. */
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

describe.each(["before", "after"] as const)("a route added %s the plugin has run", (when) => {
  it("has its own rule and counter in place of the plugin's", async () => {
    const app = await appWith(when, (app) => {
      app.get("/", async () => "ok")
      app.get("/a", { config: { rateLimit: strict } }, async () => "ok")
      app.get("/b", { config: { rateLimit: strict } }, async () => "ok")
    })
    expect(await quota(app, "/a")).toBe('"GET /a";r=1;t=61')
    expect(await quota(app, "/a")).toBe('"GET /a";r=0;t=61')
    expect(await quota(app, "/a")).toBe(429)
    // One object of options for two routes is no group.
    expect(await quota(app, "/b")).toBe('"GET /b";r=1;t=61')
    expect(await quota(app, "/")).toBe('"ip-1m";r=4;t=61')
  })

  it("opts out wholly", async () => {
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

  it("keeps the rules of a list beside its own", async () => {
    const options = { clock, rules: [{ name: "all", limit: 9, window: "1 minute" }] }
    const app = await appWith(
      when,
      (app) => app.get("/a", { config: { rateLimit: strict } }, async () => "ok"),
      options,
    )
    const { headers } = await app.inject("/a")
    expect(headers["ratelimit-policy"]).toBe('"GET /a";q=2;w=60, "all";q=9;w=60')
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

  it("shares its budget with the HEAD route that Fastify adds", async () => {
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

  it("has one counter for all its methods", async () => {
    const app = await appWith(when, (app) =>
      app.route({
        method: ["PUT", "POST"],
        url: "/a",
        config: { rateLimit: strict },
        handler: async () => "ok",
      }),
    )
    expect(await quota(app, "/a", { method: "PUT" })).toBe('"POST,PUT /a";r=1;t=61')
    expect(await quota(app, "/a", { method: "POST" })).toBe('"POST,PUT /a";r=0;t=61')
    expect(await quota(app, "/a", { method: "PUT" })).toBe(429)
  })

  it("has one counter for its pattern, with the prefix and with the slash", async () => {
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

  it("is told apart by its constraints", async () => {
    const app = await appWith(when, (app) => {
      for (const version of ["1.0.0", "2.0.0"]) {
        const options = { constraints: { version }, config: { rateLimit: strict } }
        app.get("/a", options, async () => "ok")
      }
    })
    const ask = (version: string) => quota(app, "/a", { headers: { "accept-version": version } })
    expect(await ask("1.0.0")).toContain(";r=1;")
    expect(await ask("2.0.0")).toContain(";r=1;")
    expect(await ask("1.0.0")).toContain(";r=0;")
  })

  it("fails the start with everything that is wrong, by route", async () => {
    const app = await appWith(when, (app) => {
      const wrong = (method: string, url: string, written: unknown) =>
        app.route({
          method,
          url,
          config: { rateLimit: written } as RouteOptions["config"] & object,
          handler: async () => "ok",
        })
      wrong("GET", "/a", { limit: 0, windw: "1 minute" })
      wrong("POST", "/b", true)
      wrong("POST", "/c", null)
      wrong("POST", "/d", { ...strict, group: "" })
      wrong("POST", "/e", { ...strict, hook: "onSend" })
      wrong("POST", "/f", { ...strict, group: "g" })
      wrong("POST", "/g", { ...strict, limit: 3, group: "g" })
      wrong("POST", "/h", { ...strict, group: 5 })
    })
    const error = await app.ready().then(
      () => undefined,
      (error: unknown) => error,
    )
    expect(error).toMatchObject({ code: "SLUICE_INVALID_OPTION" })
    const { problems } = error as { problems: { path: string; message: string; accepted: string }[] }
    const said = problems.map(({ path, message }) => `${path}: ${message}`)
    const at = (route: string, member = "") => `route ${route} config.rateLimit${member}`
    expect(said).toEqual(
      expect.arrayContaining([
        `${at("GET /a", ".limit")}: 0 is not a limit`,
        expect.stringMatching(/^route GET \/a config\.rateLimit\.windw: /),
        expect.stringMatching(/^route GET \/a config\.rateLimit\.window: /),
        `${at("POST /b")}: true is not a rule`,
        `${at("POST /c")}: null is not a rule`,
        `${at("POST /d", ".group")}: '' is not a group`,
        `${at("POST /e", ".hook")}: 'onSend' is not a hook`,
        `${at("POST /g")}: is another rule for group 'g'`,
        `${at("POST /h", ".group")}: 5 is not a group`,
      ]),
    )
    expect(said.filter((line) => line.includes("POST /f"))).toEqual([])
    expect(problems.find(({ path }) => path.includes("/e"))?.accepted).toBe(
      '"onRequest", "preParsing", "preValidation", "preHandler"',
    )
    expect(problems.find(({ path }) => path.includes("/g"))?.accepted).toBe(
      "the rule of route POST /f, or another group",
    )
    await app.close()
  })

  it("fails the start when HEAD has another rule than GET, or a name is taken", async () => {
    const head = await appWith(when, (app) => {
      app.head("/a", { config: { rateLimit: { ...strict, limit: 3 } } }, async () => "")
      app.get("/a", { config: { rateLimit: strict } }, async () => "ok")
    })
    await expect(head.ready()).rejects.toThrow(
      "route GET /a config.rateLimit: is another rule for the same route; accepted: the rule of route GET /a",
    )
    const names = await appWith(when, (app) => {
      app.get("/a", { config: { rateLimit: { ...strict, name: "n" } } }, async () => "ok")
      app.get("/b", { config: { rateLimit: { ...strict, name: "n" } } }, async () => "ok")
    })
    await expect(names.ready()).rejects.toThrow(/route GET \/b config\.rateLimit\.name: .*"n"/)
    await head.close()
    await names.close()
  })
})

describe("an app with no rule but those of routes", () => {
  it("counts nothing elsewhere", async () => {
    const app = fastify()
    app.register(rateLimit, {})
    app.get("/", async () => "ok")
    app.get("/a", { config: { rateLimit: strict } }, async () => "ok")
    expect(await quota(app, "/")).toBeUndefined()
    expect(await quota(app, "/a")).toMatch('"GET /a";r=1;')
    await app.close()
  })

  it("still has its options checked", async () => {
    const app = fastify()
    app.register(rateLimit, { max: 5 } as object)
    await expect(app.ready()).rejects.toThrow('"max" is not a member of the options')
  })
})
