import Router from "@koa/router"
import type { LimiterOptions } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { rateLimit } from "@sluice/express"
import { rateLimit as koaRateLimit } from "@sluice/koa"
import cookieParser from "cookie-parser"
import express, { type RequestHandler } from "express"
import express4 from "express4"
import Koa from "koa"
import request from "supertest"
import { describe, expect, it } from "vitest"

const warnings: string[] = []
const log = ({ code }: { readonly code: string }): void => void warnings.push(code)

/** Returns options for one request per minute, on a clock that does not advance. */
function once<Request>(more: Partial<LimiterOptions<Request>>): LimiterOptions<Request> {
  warnings.length = 0
  const { limit = 1, window = "1 minute" } = more
  return { clock: manualClock(), logger: { warn: log, error: log }, ...more, limit, window }
}

describe.each([
  ["Express 5", express],
  ["Express 4", express4],
] as const)("a rule by a cookie, with cookie-parser on %s,", (_name, create) => {
  const ok: RequestHandler = (_req, res) => void res.send("ok")

  it("counts a signed cookie by its value, and treats a cookie with a wrong signature as missing", async () => {
    const app = create()
    app.use(cookieParser("secret"))
    app.get("/set", (_req, res) => void res.cookie("session", "alice", { signed: true }).send("set"))
    app.use(rateLimit(once({ field: "cookie:session", onMissing: "deny" })))
    app.get("/", ok)
    const [set = ""] = [(await request(app).get("/set")).headers["set-cookie"]].flat()
    const [session = ""] = /^session=[^;]+/.exec(set) ?? []
    expect(session).toContain("s%3Aalice.")
    const rows: readonly (readonly [string, number])[] = [
      [session, 200],
      [`${session}; plain=p`, 429],
      [`${session}x`, 400],
      ["session=s%3Aalice.forged", 400],
      ["plain=p", 400],
      // The client can choose the value of an unsigned cookie.
      ["session=bob", 200],
      ["session=bob", 429],
    ]
    for (const [cookie, status] of rows) {
      expect([cookie, (await request(app).get("/").set("cookie", cookie)).status]).toEqual([cookie, status])
    }
  })
})

describe.each([
  ["Express 5", express],
  ["Express 4", express4],
] as const)("the route of %s", (_name, create) => {
  it("is known for a router mounted below a path, but not below a path with parameters", async () => {
    const limit = (name: string) => rateLimit(once({ name, field: "route", onMissing: "deny" }))
    const ok: RequestHandler = (_req, res) => void res.send("ok")
    const app = create()
    app.use("/api", create.Router().get("/:id", limit("plain"), ok))
    app.use("/of/:tenant", create.Router().get("/:id", limit("tenants"), ok))
    const statuses = []
    for (const path of ["/api/1", "/api/2", "/of/a/1", "/of/b/1"]) {
      statuses.push((await request(app).get(path)).status)
    }
    expect(statuses).toEqual([200, 429, 400, 400])
    expect(warnings).toEqual(["SLUICE_ROUTE_UNKNOWN"])
  })
})

describe("the route of @koa/router", () => {
  it("is known if the limiter is mounted on the route, but not if it is mounted on the whole router", async () => {
    const [all, one] = ["all", "one"].map((name) =>
      koaRateLimit(once({ name, field: "route", onMissing: "skip" })),
    )
    const router = new Router({ prefix: "/api" })
    const ok: Koa.Middleware = (ctx) => {
      ctx.body = "ok"
    }
    router.use(all as Koa.Middleware)
    router.get("/a", ok)
    router.get("/b/:id", one as Koa.Middleware, ok)
    const app = new Koa().use(router.routes()).callback()
    const statuses = []
    for (const path of ["/api/a", "/api/a", "/api/b/1", "/api/b/2"]) {
      statuses.push((await request(app).get(path)).status)
    }
    expect(statuses).toEqual([200, 200, 200, 429])
    expect(warnings).toEqual(["SLUICE_ROUTE_UNKNOWN"])
  })
})
