import type { RequestListener } from "node:http"
import Router from "@koa/router"
import { createLimiter } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { type RateLimitOptions, rateLimit } from "@sluice/express"
import { rateLimit as onHono } from "@sluice/fetch/hono"
import { rateLimit as onKoa } from "@sluice/koa"
import { initTRPC } from "@trpc/server"
import { createExpressMiddleware } from "@trpc/server/adapters/express"
import express, { type RequestHandler } from "express"
import { Hono } from "hono"
import { methodOverride } from "hono/method-override"
import Koa, { type Middleware } from "koa"
import { describe, expect, it } from "vitest"
import { listening } from "./servers/listening.ts"

async function posting(
  listener: RequestListener,
): Promise<(target: string, body: unknown) => Promise<number>> {
  const url = await listening(listener)
  const headers = { "Content-Type": "application/json" }
  return async (target, body) =>
    (await fetch(url + target, { method: "POST", headers, body: JSON.stringify(body) })).status
}

const limiting = (options: object) =>
  rateLimit({
    limit: 4,
    window: "1 minute",
    clock: manualClock(),
    ...options,
  } as RateLimitOptions) as RequestHandler

describe("as docs/rules/paths.md states about batches,", () => {
  async function serving(options: object) {
    let tries = 0
    const t = initTRPC.create()
    const router = t.router({ login: t.procedure.mutation(() => ++tries) })
    const app = express().use(limiting(options)).use("/trpc", createExpressMiddleware({ router }))
    const post = await posting(app)
    const batch = (times: number, comma = ",") =>
      post(
        `/trpc/${Array(times).fill("login").join(comma)}?batch=1`,
        Object.fromEntries(Array(times).fill({}).entries()),
      )
    return { post, batch, tries: () => tries }
  }
  const cost = (req: { path: string }) => req.path.split(/,|%2c/i).length

  it.each([",", "%2C", "%2c"])(
    "a cost function counts each call in a tRPC batch that is joined with %s",
    async (comma) => {
      const { post, batch, tries } = await serving({ match: { path: "/trpc/*" }, cost })
      expect(await post("/trpc/login", {})).toBe(200)
      expect([await batch(3, comma), await batch(1, comma)]).toEqual([200, 429])
      expect([await batch(2, comma), tries()]).toEqual([429, 4])
    },
  )

  it("a rule for one tRPC procedure does not apply to a batch", async () => {
    const { batch, tries } = await serving({ match: { path: "/trpc/login" } })
    expect([await batch(5), tries()]).toEqual([200, 5])
  })

  it("a cost function counts each call in an array body", async () => {
    const cost = (req: { body: unknown }) => (Array.isArray(req.body) ? Math.max(1, req.body.length) : 1)
    const limit = limiting({ match: { path: "/graphql" }, cost })
    const post = await posting(express().use(express.json(), limit, (_req, res) => void res.end()))
    const statuses: number[] = []
    for (const body of [{}, [{}, {}], [], [{}], {}]) statuses.push(await post("/graphql", body))
    expect(statuses).toEqual([200, 200, 200, 429, 429])
  })

  it.each([
    ["/login{.data}", ["/login", "/login.data", "/LOGIN.DATA?_routes=x"], ["/login.json", "/logindata"]],
    ["/_root.data", ["/_root.data"], ["/"]],
    ["/login{.:format}", ["/login", "/login.json", "/login.xml"], ["/loginjson"]],
    ["/_next/data/:build/login.json", ["/_next/data/x1/login.json?a=1"], ["/login"]],
    ["/_app/remote/*", ["/_app/remote/abc/login"], ["/login"]],
    ["/login", ["/login?_data=routes%2Flogin", "/login?_rsc=x"], ["/login.data", "/login/__data.json"]],
  ])("the path %s matches as the table states", async (path, matching, others) => {
    const limiter = createLimiter({ limit: 100, window: "1 minute", match: { path }, clock: manualClock() })
    const checks = async (url: string) =>
      (await limiter.decide({ url, remoteAddress: "192.0.2.1" })).checks.length
    for (const url of matching) expect([url, await checks(url)]).toEqual([url, 1])
    for (const url of others) expect([url, await checks(url)]).toEqual([url, 0])
  })
})

describe("as docs/errors/sluice_mounted_too_late.md states,", () => {
  const options = { limit: 1, window: "1 minute", clock: manualClock() } as const

  it("a limiter that follows the routes of a Koa router does not run", async () => {
    const ok: Middleware = (ctx) => {
      ctx.body = "ok"
    }
    const router = new Router().post("/", ok).use(onKoa(options))
    const post = await posting(new Koa().use(router.routes()).callback())
    expect([await post("/", {}), await post("/", {})]).toEqual([200, 200])
  })

  it("a limiter that follows a Hono route does not run for that route", async () => {
    const app = new Hono().get("/", (c) => c.text("ok"))
    app.use(onHono({ ...options, clientAddress: () => "192.0.2.1" }))
    expect([(await app.request("/")).status, (await app.request("/")).status]).toEqual([200, 200])
    expect([(await app.request("/none")).status, (await app.request("/none")).status]).toEqual([404, 429])
  })
})

describe("as docs/rules/paths.md states about hono/method-override,", () => {
  const rules = [
    { match: { methods: ["DELETE"] }, field: "ip", limit: 1, window: "1 minute", name: "delete" },
  ]

  it("a limiter after the override counts each request once, under its new method", async () => {
    const decided: (readonly string[])[] = []
    const limit = onHono({
      rules: [...rules, { field: "ip", limit: 9, window: "1 minute", name: "all" }],
      clock: manualClock(),
      clientAddress: () => "192.0.2.1",
    })
    limit.limiter.on("decision", ({ checks }, { req }) =>
      decided.push([req.method, ...checks.map((each) => each.policy)]),
    )
    const app = new Hono()
    app.use("*", methodOverride({ app, form: "_method" }))
    app.use("*", limit)
    app.delete("/item", (context) => context.text("gone"))
    const ask = async () => {
      const body = new URLSearchParams({ _method: "DELETE" })
      return (await app.request("/item", { method: "POST", body })).status
    }
    expect([await ask(), await ask()]).toEqual([200, 429])
    expect(decided).toEqual([
      ["DELETE", "delete", "all"],
      ["DELETE", "delete", "all"],
    ])
  })
})
