import type { RequestListener } from "node:http"
import { manualClock } from "@sluice/core/testing"
import { rateLimit } from "@sluice/express"
import { rateLimit as onKoa } from "@sluice/koa"
import express, { type RequestHandler } from "express"
import express4 from "express4"
import Koa, { type Context, type Middleware } from "koa"
import Koa2 from "koa2"
import methodOverride from "method-override"
import { describe, expect, it } from "vitest"
import { listening } from "./servers/listening.ts"

/** Sends three POST requests that each name another method, and returns the statuses. */
async function statuses(listener: RequestListener, header: string, method: string, target = "/item") {
  const url = await listening(listener)
  const all: number[] = []
  for (let i = 0; i < 3; i++) {
    const response = await fetch(url + target, {
      method: "POST",
      headers: header === "" ? {} : { [header]: method },
    })
    all.push(response.status)
  }
  return all
}

/** A limit of one for each address, for requests with this method. */
const limiting = (method: string) =>
  ({
    limit: 1,
    window: "1 minute",
    clock: manualClock(),
    match: { methods: [method], path: "/item" },
  }) as const

const STANDARD = "X-HTTP-Method-Override"

describe.each<[string, typeof express]>([
  ["Express 5", express],
  ["Express 4", express4 as typeof express],
])("on %s with method-override", (_name, create) => {
  const ok: RequestHandler = (_req, res) => void res.end("ok")
  const limit = (method: string) => rateLimit(limiting(method)) as RequestHandler

  it.each<[string, string, string, (app: ReturnType<typeof express>) => unknown, string]>([
    [
      "a rule for DELETE counts a POST that becomes DELETE before the limiter",
      STANDARD,
      "DELETE",
      (app) => app.use(methodOverride(STANDARD), limit("DELETE")).delete("/item", ok),
      "/item",
    ],
    [
      "a rule for DELETE counts a POST that becomes DELETE after the limiter",
      STANDARD,
      "DELETE",
      (app) => app.use(limit("DELETE"), methodOverride(STANDARD)).delete("/item", ok),
      "/item",
    ],
    [
      "a rule for DELETE counts a POST that its query turns into DELETE after the limiter",
      "",
      "",
      (app) => app.use(limit("DELETE"), methodOverride("_method")).delete("/item", ok),
      "/item?_method=DELETE",
    ],
    [
      "a rule for POST counts a POST that becomes LOCK before the limiter",
      STANDARD,
      "LOCK",
      (app) => app.use(methodOverride(STANDARD), limit("POST")).all("/item", ok),
      "/item",
    ],
    [
      "a rule for POST counts a POST that becomes LOCK through a custom header",
      "X-Verb",
      "LOCK",
      (app) => app.use(methodOverride("X-Verb"), limit("POST")).all("/item", ok),
      "/item",
    ],
    [
      "a rule for POST counts a POST that becomes GET before the limiter",
      STANDARD,
      "GET",
      (app) => app.use(methodOverride(STANDARD), limit("POST")).all("/item", ok),
      "/item",
    ],
  ])("%s", async (_title, header, method, mount, target) => {
    const app = create()
    mount(app)
    expect(await statuses(app, header, method, target)).toEqual([200, 429, 429])
  })

  it("a limiter does not recognize a later override with a custom header, as paths.md says", async () => {
    const app = create()
    app.use(limit("DELETE"), methodOverride("X-Verb")).delete("/item", ok)
    expect(await statuses(app, "X-Verb", "DELETE")).toEqual([200, 200, 200])
  })
})

describe.each<[string, typeof Koa]>([
  ["Koa 3", Koa],
  ["Koa 2", Koa2 as typeof Koa],
])("on %s with a method override by the app", (_name, Application) => {
  const override: Middleware = (ctx: Context, next) => {
    ctx.method = ctx.get(STANDARD) || ctx.method
    return next()
  }
  const ok: Middleware = (ctx) => {
    ctx.body = ctx.method
  }

  it.each([
    ["DELETE", "before"],
    ["DELETE", "after"],
    ["POST", "before"],
    ["POST", "after"],
  ])("a rule for %s counts a POST that becomes DELETE %s the limiter", async (method, place) => {
    const app = new Application()
    const limit = onKoa(limiting(method))
    for (const each of place === "before" ? [override, limit] : [limit, override]) app.use(each)
    expect(await statuses(app.use(ok).callback(), STANDARD, "DELETE")).toEqual([200, 429, 429])
  })
})
