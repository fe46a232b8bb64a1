import { manualClock } from "@sluice/core/testing"
import { rateLimit } from "@sluice/express"
import express, { type Express, type RequestHandler } from "express"
import express4 from "express4"
import { afterEach, describe, expect, it, vi } from "vitest"
import { listening } from "./servers/listening.ts"

afterEach(() => vi.restoreAllMocks())

const ok: RequestHandler = (_req, res) => void res.send("ok")
const notFound: RequestHandler = (_req, res) => void res.sendStatus(404)
const skip: RequestHandler = (_req, _res, next) => next()
const onError = (_error: unknown, _req: unknown, res: express.Response, _next: unknown): void =>
  void res.sendStatus(500)

/** Adds the limiter and routes to an app. `create` makes an app, and `router` a router. */
type Mount = (
  app: Express,
  limiter: RequestHandler,
  router: () => express.Router,
  create: () => Express,
) => void

const another = (name = "other"): RequestHandler =>
  rateLimit({ name, limit: 100, window: "1 minute" }) as RequestHandler

/** Apps in which the limiter protects no route, and the routes that the warning names. */
const LATE: readonly [string, Mount, string][] = [
  ["it is last", (app, limiter) => app.get("/login", ok).use(limiter), "GET /login and every other route"],
  [
    "only an error handler follows",
    (app, limiter) => app.post("/a", ok).use(limiter, onError),
    "POST /a and every other route",
  ],
  [
    "the routes are in a router",
    (app, limiter, router) => app.use(skip).use("/api", router().get("/users", ok)).use(limiter),
    "GET /api/users and every other route",
  ],
  [
    "only a 404 handler follows",
    (app, limiter) => app.all("/", ok).use(limiter).use(notFound),
    "ALL / and every other route",
  ],
  [
    "it is on a path, after a router",
    (app, limiter, router) => app.use("/api/user", router().get("/me", ok)).use("/api/", limiter),
    "GET /api/user/me and every other route below /api",
  ],
  [
    "it is on a path, and the routes that follow are on other paths",
    (app, limiter, router) =>
      app
        .get("/api/:id", ok)
        .use("/api", limiter)
        .get("/apix", ok)
        .use("/web", router().get("/", ok), skip)
        .use(notFound),
    "GET /api/:id and every other route below /api",
  ],
  [
    "it is in a router, after the router's routes",
    (app, limiter, router) => app.use("/api/user", router().get("/me", ok).use(limiter)),
    "GET /api/user/me and every other route below /api/user",
  ],
  [
    "it is in a router, after the routes of the app",
    (app, limiter, router) => app.get("/api/me", ok).use("/api", router().use(limiter)),
    "GET /api/me and every other route below /api",
  ],
  [
    "it is in a nested app, after that app's routes",
    (app, limiter, _router, create) => app.use("/api/user", create().get("/me", ok).use(limiter)),
    "GET /api/user/me and every other route below /api/user",
  ],
  [
    "only one of the routes has its own limiter",
    (app, limiter) => app.post("/login", another(), ok).get("/", ok).use(limiter),
    "GET / and every other route",
  ],
]

/** Apps in which the limiter may be at the right place. */
const FINE: readonly [string, Mount][] = [
  ["it is first", (app, limiter) => app.use(limiter).get("/", ok)],
  ["a route follows", (app, limiter) => app.get("/health", ok).use(limiter).get("/", ok)],
  [
    "a router follows",
    (app, limiter, router) => app.get("/health", ok).use(limiter).use(router().get("/", ok)),
  ],
  ["an app follows", (app, limiter, _router, create) => app.get("/health", ok).use(limiter).use(create())],
  ["a function on a path follows", (app, limiter) => app.get("/", ok).use(limiter).use("/graphql", ok)],
  ["a later function responds", (app, limiter) => app.get("/health", ok).use(limiter).use(ok)],
  ["it is on a path without routes before it", (app, limiter) => app.get("/", ok).use("/nothing", limiter)],
  ["it is on a route", (app, limiter) => app.get("/", ok).all(/.*/, limiter, notFound)],
  ["there are no routes", (app, limiter) => app.use(skip).use(limiter)],
  ["only files are before it", (app, limiter) => app.use(express.static("/nowhere")).use(limiter)],
  [
    "it is on a path, and a router on the path follows",
    (app, limiter, router) =>
      app.get("/nothing/health", ok).use("/nothing", limiter).use("/nothing/user", router().get("/me", ok)),
  ],
  [
    "it is on a path, and a route with a parameter follows",
    (app, limiter) => app.get("/nothing/health", ok).use("/nothing", limiter).get("/:any/me", ok),
  ],
  [
    "it is in a router, before the router's routes",
    (app, limiter, router) => app.get("/nothing/a", ok).use("/nothing", router().use(limiter).get("/me", ok)),
  ],
  [
    "it is in a router, and a route of the app follows",
    (app, limiter, router) => app.use(router().get("/health", ok).use(limiter)).get("/me", ok),
  ],
  ["another limiter is before the routes", (app, limiter) => app.use(another()).get("/", ok).use(limiter)],
  [
    "each route has a limiter",
    (app, limiter) => app.get("/", another("one"), ok).get("/b", another("two"), ok).use(limiter),
  ],
]

describe.each<[string, typeof express]>([
  ["Express 5", express],
  ["Express 4", express4 as typeof express],
])("@sluice/express on %s", (_name, create) => {
  async function open(mount: Mount, limit = 100) {
    const warnings: string[] = []
    const logger = { warn: (_fields: object, message: string) => void warnings.push(message), error() {} }
    const app = create()
    const clock = manualClock()
    const limiter = rateLimit({ limit, window: "1 minute", logger, clock }) as RequestHandler
    mount(app, limiter, () => create.Router(), create)
    const url = await listening(app)
    const ask = async (method: string, path: string): Promise<void> => {
      await fetch(url + path, { method })
    }
    return { app, clock, warnings, ask }
  }

  /** Advances the clock, so that the app seems to have started long ago. */
  function started(): void {
    const { now } = performance
    vi.spyOn(performance, "now").mockImplementation(() => now.call(performance) + 2_000)
  }

  it.each(LATE)("warns once about a limiter that protects no route if %s", async (_title, mount, routes) => {
    const { warnings, ask } = await open(mount)
    started()
    for (const path of ["/nothing", "/api/user/nothing/at/all"])
      await Promise.all(Array.from({ length: 12 }, () => ask("GET", path)))
    expect(warnings).toEqual([
      expect.stringContaining(`The limiter is mounted after ${routes}, so it only limits `),
    ])
  })

  it.each(FINE)("does not warn about a limiter if %s", async (_title, mount) => {
    const { warnings, ask } = await open(mount)
    started()
    await Promise.all(Array.from({ length: 12 }, () => ask("GET", "/nothing")))
    expect(warnings).toEqual([])
  })

  it("does not warn while the app is starting, or if the app adds a route later", async () => {
    const { app, warnings, ask } = await open((app, limiter) => app.get("/health", ok).use(limiter))
    await ask("GET", "/late")
    app.get("/late", ok)
    started()
    for (const path of ["/late", "/nothing", "/nothing"]) await ask("GET", path)
    expect(warnings).toEqual([])
  })

  it("does not warn because of a refused request, or an OPTIONS request that Express itself handles", async () => {
    const { clock, warnings, ask } = await open((app, limiter) => app.get("/", ok).use(limiter), 1)
    await ask("OPTIONS", "/")
    started()
    await ask("GET", "/nothing")
    expect(warnings).toEqual([])
    clock.advance(120_000)
    await ask("GET", "/nothing")
    expect(warnings).toHaveLength(1)
  })
})
