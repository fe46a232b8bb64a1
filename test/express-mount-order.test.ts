import { once } from "node:events"
import type { AddressInfo } from "node:net"
import { manualClock } from "@sluice/core"
import { rateLimit } from "@sluice/express"
import express, { type Express, type RequestHandler } from "express"
import express4 from "express4"
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest"

afterEach(() => vi.restoreAllMocks())

const ok: RequestHandler = (_req, res) => void res.send("ok")
const notFound: RequestHandler = (_req, res) => void res.sendStatus(404)
const skip: RequestHandler = (_req, _res, next) => next()
const onError = (_error: unknown, _req: unknown, res: express.Response, _next: unknown): void =>
  void res.sendStatus(500)

type Mount = (app: Express, limiter: RequestHandler, router: () => express.Router) => void

/** Apps in which the limiter protects nothing, and the route that the warning names. */
const LATE: readonly [string, Mount, string][] = [
  ["it is last", (app, limiter) => app.get("/login", ok).use(limiter), "GET /login"],
  ["only an error handler follows", (app, limiter) => app.post("/a", ok).use(limiter, onError), "POST /a"],
  [
    "the routes are in a router",
    (app, limiter, router) => app.use(skip).use("/api", router().get("/users", ok)).use(limiter),
    "GET /users",
  ],
  ["only a 404 handler follows", (app, limiter) => app.get("/", ok).use(limiter).use(notFound), "GET /"],
]

/** Apps in which the limiter may be where it should be. */
const FINE: readonly [string, Mount][] = [
  ["it is first", (app, limiter) => app.use(limiter).get("/", ok)],
  ["a route follows", (app, limiter) => app.get("/health", ok).use(limiter).get("/", ok)],
  [
    "a router follows",
    (app, limiter, router) => app.get("/health", ok).use(limiter).use(router().get("/", ok)),
  ],
  ["a function on a path follows", (app, limiter) => app.get("/", ok).use(limiter).use("/graphql", ok)],
  ["a function after it answers", (app, limiter) => app.get("/health", ok).use(limiter).use(ok)],
  ["it is on a path", (app, limiter) => app.get("/", ok).use("/nothing", limiter)],
  ["it is on a route", (app, limiter) => app.get("/", ok).all(/.*/, limiter, notFound)],
  ["there are no routes", (app, limiter) => app.use(skip).use(limiter)],
  [
    "another limiter is before the routes",
    (app, limiter) =>
      app
        .use(rateLimit({ name: "all", limit: 100, window: "1 minute" }))
        .get("/", ok)
        .use(limiter),
  ],
  [
    "a route has a limiter",
    (app, limiter) =>
      app.get("/", rateLimit({ name: "one", limit: 100, window: "1 minute" }), ok).use(limiter),
  ],
]

describe.each<[string, typeof express]>([
  ["Express 5", express],
  ["Express 4", express4 as typeof express],
])("on %s", (_name, create) => {
  async function open(mount: Mount, limit = 100) {
    const warnings: string[] = []
    const logger = { warn: (_fields: object, message: string) => void warnings.push(message), error() {} }
    const app = create()
    const clock = manualClock()
    mount(app, rateLimit({ limit, window: "1 minute", logger, clock }) as RequestHandler, () =>
      create.Router(),
    )
    const server = app.listen(0, "127.0.0.1")
    onTestFinished(() => void server.close())
    await once(server, "listening")
    const { port } = server.address() as AddressInfo
    const ask = async (method: string, path: string): Promise<void> => {
      await fetch(`http://127.0.0.1:${port}${path}`, { method })
    }
    return { app, clock, warnings, ask }
  }

  /** Lets the app have started long ago. */
  function started(): void {
    const { now } = performance
    vi.spyOn(performance, "now").mockImplementation(() => now.call(performance) + 2_000)
  }

  it.each(LATE)("reports a limiter after all routes, once, if %s", async (_title, mount, route) => {
    const { warnings, ask } = await open(mount)
    started()
    await Promise.all(Array.from({ length: 12 }, () => ask("GET", "/nothing")))
    expect(warnings).toEqual([
      expect.stringContaining(
        `The limiter is mounted after ${route} and every other route, so it only limits `,
      ),
    ])
  })

  it.each(FINE)("does not report a limiter if %s", async (_title, mount) => {
    const { warnings, ask } = await open(mount)
    started()
    await Promise.all(Array.from({ length: 12 }, () => ask("GET", "/nothing")))
    expect(warnings).toEqual([])
  })

  it("reports nothing while the app may still add routes, or if it does", async () => {
    const { app, warnings, ask } = await open((app, limiter) => app.get("/health", ok).use(limiter))
    await ask("GET", "/late")
    app.get("/late", ok)
    started()
    for (const path of ["/late", "/nothing", "/nothing"]) await ask("GET", path)
    expect(warnings).toEqual([])
  })

  it("ignores requests with OPTIONS, which Express answers for a route, and refused requests", async () => {
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
