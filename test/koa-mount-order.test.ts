import Router from "@koa/router"
import { manualClock } from "@sluice/core/testing"
import { rateLimit } from "@sluice/koa"
import Koa, { type Middleware } from "koa"
import Koa2 from "koa2"
import { afterEach, describe, expect, it, vi } from "vitest"
import { listening } from "./servers/listening.ts"

afterEach(() => vi.restoreAllMocks())

const ok: Middleware = (ctx) => {
  ctx.body = "ok"
}
const skip: Middleware = (_ctx, next) => next()
const notFound: Middleware = (ctx) => {
  ctx.status = 404
  ctx.body = "none"
}
const another = (): Middleware => rateLimit({ name: "other", limit: 100, window: "1 minute" })
const router = (prefix = ""): Router => new Router({ prefix })

type Mount = (app: Koa, limiter: Middleware) => unknown

const LATE: readonly [string, Mount, string][] = [
  [
    "it is last",
    (app, limiter) => app.use(router("/api").get("/me", ok).routes()).use(limiter),
    "GET /api/me",
  ],
  [
    "only a 404 handler follows",
    (app, limiter) => app.use(skip).use(router().post("/a", ok).routes()).use(limiter).use(notFound),
    "POST /a",
  ],
  [
    "the routes are in a nested router",
    (app, limiter) => app.use(router("/api").use(router("/b").get("/c", ok).routes()).routes()).use(limiter),
    "GET /api/b/c",
  ],
]

const FINE: readonly [string, Mount][] = [
  ["it is first", (app, limiter) => app.use(limiter).use(router().get("/", ok).routes())],
  [
    "a router follows",
    (app, limiter) =>
      app.use(router().get("/health", ok).routes()).use(limiter).use(router().get("/", ok).routes()),
  ],
  [
    "a later function responds",
    (app, limiter) => app.use(router().get("/", ok).routes()).use(limiter).use(ok),
  ],
  ["there are no routes", (app, limiter) => app.use(skip).use(limiter)],
  ["it is on a route", (app, limiter) => app.use(router().all("/{*any}", limiter, notFound).routes())],
  [
    "it is in a router",
    (app, limiter) =>
      app.use(router().get("/", ok).routes()).use(router().use(limiter).get("/nothing", notFound).routes()),
  ],
  [
    "another limiter is before the routes",
    (app, limiter) => app.use(another()).use(router().get("/", ok).routes()).use(limiter),
  ],
  [
    "a router has a limiter",
    (app, limiter) => app.use(router().use(another()).get("/", ok).routes()).use(limiter),
  ],
]

describe.each<[string, typeof Koa]>([
  ["Koa 3", Koa],
  ["Koa 2", Koa2 as typeof Koa],
])("@sluice/koa on %s", (_name, Application) => {
  async function open(mount: Mount, limit = 100) {
    const warnings: string[] = []
    const logger = { warn: (_fields: object, message: string) => void warnings.push(message), error() {} }
    const app = new Application()
    mount(app, rateLimit({ limit, window: "1 minute", logger, clock: manualClock() }))
    const url = await listening(app.callback())
    const ask = (path: string, method = "GET") => fetch(url + path, { method })
    return { warnings, ask }
  }

  /** Advances the clock, so that the app seems to have started long ago. */
  function started(): void {
    const { now } = performance
    vi.spyOn(performance, "now").mockImplementation(() => now.call(performance) + 2_000)
  }

  it.each(LATE)("warns once about a limiter that protects no route if %s", async (_title, mount, route) => {
    const { warnings, ask } = await open(mount)
    started()
    await Promise.all(Array.from({ length: 12 }, () => ask("/nothing")))
    expect(warnings).toEqual([
      expect.stringContaining(
        `The limiter is mounted after ${route} and every other route, so it only limits `,
      ),
    ])
  })

  it.each(FINE)("does not warn about a limiter if %s", async (_title, mount) => {
    const { warnings, ask } = await open(mount)
    started()
    await Promise.all(Array.from({ length: 12 }, () => ask("/nothing")))
    expect(warnings).toEqual([])
  })

  it("does not warn just after the start, or because of a refused request or an OPTIONS request", async () => {
    const { warnings, ask } = await open(
      (app, limiter) => app.use(router().get("/", ok).routes()).use(limiter),
      1,
    )
    await ask("/nothing", "OPTIONS")
    await ask("/nothing")
    started()
    await ask("/nothing")
    expect(warnings).toEqual([])
  })
})
