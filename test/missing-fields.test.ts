import { manualClock } from "@sluice/core/testing"
import { rateLimit as expressRateLimit } from "@sluice/express"
import { rateLimit as fastifyRateLimit } from "@sluice/fastify"
import { rateLimit as fetchRateLimit } from "@sluice/fetch"
import { rateLimit as koaRateLimit } from "@sluice/koa"
import express, { type RequestHandler } from "express"
import fastify from "fastify"
import Koa from "koa"
import request from "supertest"
import { beforeEach, describe, expect, it, onTestFinished } from "vitest"

const warnings: string[] = []
const log = ({ code }: { readonly code: string }, message: string): void =>
  void warnings.push(`${code} ${message}`)
const BASE = { clock: manualClock(), logger: { warn: log, error: log }, limit: 1_000, window: "1 minute" }
const UNSET = expect.stringMatching(
  /^SLUICE_FIELD_MISSING Rule "user-1m" .*mount the limiter after the code that sets it, such as authentication/,
)

beforeEach(() => {
  warnings.length = 0
})

type Framework = Parameters<typeof request>[0]

async function send(app: Framework, times: number, path = "/users/7"): Promise<void> {
  for (let i = 0; i < times; i++) await request(app).get(path)
}

describe("on Express, a rule whose field is missing", () => {
  const authenticate: RequestHandler = (req, _res, next) => {
    Object.assign(req, { user: "ann" })
    next()
  }
  const limit = () =>
    expressRateLimit({
      ...BASE,
      field: "user",
      fields: { user: (req) => (req as { user?: string }).user },
    })
  const ok: RequestHandler = (_req, res) => void res.send("ok")

  it("causes a warning if the limiter is mounted before authentication", async () => {
    const app = express().use(limit()).use(authenticate).get("/users/:id", ok)
    await send(app, 19)
    expect(warnings).toEqual([])
    await send(app, 5)
    expect(warnings).toEqual([UNSET])
  })

  it("causes a warning if the field is a route parameter and the limiter is mounted for all routes", async () => {
    const app = express()
      .use(expressRateLimit({ ...BASE, field: "param:id" }))
      .get("/users/:id", ok)
    await send(app, 21)
    expect(warnings).toEqual([expect.stringContaining('on a route with the parameter "id"')])
  })
})

describe("on Fastify, a rule by user", () => {
  async function open(hook: "onRequest" | undefined) {
    const app = fastify()
    onTestFinished(() => app.close())
    const fields = { user: (asked: object) => (asked as { user?: string }).user }
    await app.register(fastifyRateLimit, { ...BASE, field: "user", fields, ...(hook && { hook }) })
    app.decorateRequest("user", undefined as never)
    app.addHook("preHandler", async (asked) => void Object.assign(asked, { user: "ann" }))
    app.get("/users/:id", async () => "ok")
    await app.ready()
    return app
  }

  it("causes a warning if it is checked in a hook before authentication", async () => {
    const app = await open("onRequest")
    for (let i = 0; i < 21; i++) await app.inject("/users/7")
    expect(warnings).toEqual([UNSET])
    expect(warnings[0]).toContain('On Fastify, leave out "hook"')
  })

  it("causes no warning if it is checked when the user is known", async () => {
    const app = await open(undefined)
    for (let i = 0; i < 21; i++) await app.inject("/users/7")
    expect(warnings).toEqual([])
  })
})

it("a rule by user on Koa causes a warning if the limiter is mounted before authentication", async () => {
  const limit = koaRateLimit({ ...BASE, field: "user", fields: { user: (ctx) => ctx.state.user } })
  const app = new Koa()
  app.use(limit).use((ctx, next) => {
    ctx.state.user = "ann"
    return next()
  })
  await send(app.callback(), 21)
  expect(warnings).toEqual([UNSET])
})

it("a function of fields that returns an object causes a warning on the first request to @sluice/fetch", async () => {
  const users = new WeakMap<Request, object>()
  const limit = fetchRateLimit({
    ...BASE,
    clientAddress: () => "192.0.2.1",
    field: "user",
    fields: { user: (asked) => users.get(asked) as never },
  })
  const asked = new Request("http://localhost/")
  users.set(asked, { id: 7 })
  // A request that arrives while its limiter is created causes another warning.
  await Promise.resolve()
  await limit(asked)
  expect(warnings).toEqual([
    expect.stringContaining(
      'SLUICE_EXTRACTOR_FAILED The function of field "user" returned an object; it must return',
    ),
  ])
})
