import { createLimiter } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import * as onExpress from "@sluice/express"
import * as onFastify from "@sluice/fastify"
import * as onKoa from "@sluice/koa"
import express, { type Response as ExpressResponse, type RequestHandler } from "express"
import express4 from "express4"
import fastify, { type FastifyReply } from "fastify"
import fastify50 from "fastify50"
import Koa, { type Context } from "koa"
import Koa2 from "koa2"
import { describe, expect, it, onTestFinished } from "vitest"
import { listening } from "./servers/listening.ts"

/** The ways in which an error handler responds, in terms of all frameworks. */
type Answer = "json" | "redirect" | "status"
interface Plan {
  readonly options: object
  /** The error handler of the app. Default: the framework's error handler. */
  readonly answer?: Answer
}
interface App {
  readonly url: string
  /** The errors that the error handler has received. */
  readonly errors: readonly unknown[]
}
type Start = (plan: Plan) => Promise<App>

const startExpress =
  (create: typeof express): Start =>
  async ({ options, answer }) => {
    const errors: unknown[] = []
    // Express prints errors that its own handler receives.
    const app = create().set("env", "test")
    app.use(onExpress.rateLimit(options as onExpress.RateLimitOptions) as RequestHandler)
    app.get("/", (_req, res) => void res.send("ok"))
    if (answer !== undefined) {
      app.use((error: unknown, _req: unknown, res: ExpressResponse, _next: unknown) => {
        errors.push(error)
        if (answer === "redirect") res.redirect("/x")
        else if (answer === "status") res.status(418).json({ sorry: true })
        else res.json({ sorry: true })
      })
    }
    return { url: await listening(app), errors }
  }

const startKoa =
  (Application: typeof Koa): Start =>
  async ({ options, answer }) => {
    const errors: unknown[] = []
    const app = new Application()
    if (answer !== undefined) {
      app.use(async (ctx: Context, next) => {
        try {
          await next()
        } catch (error) {
          errors.push(error)
          if (answer === "redirect") ctx.redirect("/x")
          else {
            if (answer === "status") ctx.status = 418
            ctx.body = { sorry: true }
          }
        }
      })
    }
    app.use(onKoa.rateLimit(options as onKoa.RateLimitOptions))
    app.use((ctx) => {
      ctx.body = "ok"
    })
    return { url: await listening(app.callback()), errors }
  }

const startFastify =
  (create: typeof fastify): Start =>
  async ({ options, answer }) => {
    const errors: unknown[] = []
    const app = create()
    await app.register(onFastify.rateLimit, options as onFastify.RateLimitOptions)
    app.get("/", async () => "ok")
    if (answer !== undefined) {
      app.setErrorHandler((error: unknown, _request: unknown, reply: FastifyReply) => {
        errors.push(error)
        if (answer === "redirect") reply.redirect("/x")
        else if (answer === "status") reply.code(418).send({ sorry: true })
        else reply.send({ sorry: true })
      })
    }
    onTestFinished(() => app.close())
    return { url: await app.listen({ port: 0, host: "127.0.0.1" }), errors }
  }

async function second({ url }: App): Promise<Response> {
  const ask = () => fetch(url, { redirect: "manual" })
  expect((await ask()).status).toBe(200)
  return await ask()
}

const rule = () => ({ limit: 1, window: "1 minute", clock: manualClock(0), throwOnRefusal: true }) as const

describe.each<[string, Start, { readonly RefusalError: typeof onExpress.RefusalError }]>([
  ["Express 5", startExpress(express), onExpress],
  ["Express 4", startExpress(express4 as typeof express), onExpress],
  ["Koa 3", startKoa(Koa), onKoa],
  ["Koa 2", startKoa(Koa2 as typeof Koa), onKoa],
  ["Fastify 5", startFastify(fastify), onFastify],
  ["Fastify 5.0", startFastify(fastify50 as unknown as typeof fastify), onFastify],
])("with throwOnRefusal on %s, the app's error handler", (_name, start, { RefusalError }) => {
  const told = { "retry-after": "61", "cache-control": "no-store", ratelimit: '"ip-1m";r=0;t=61' }

  it.each<[string, Answer, number, string | null]>([
    ["may respond with a redirect, which keeps its status", "redirect", 302, "/x"],
    ["may respond without a status, and the refusal's status is used", "json", 429, null],
    ["may choose a status", "status", 418, null],
  ])("%s", async (_title, answer, status, location) => {
    const app = await start({ options: rule(), answer })
    const response = await second(app)
    expect([response.status, response.headers.get("location")]).toEqual([status, location])
    expect(Object.fromEntries(response.headers)).toMatchObject(told)
    expect(response.headers.get("content-type") ?? "").not.toContain("problem")
    const [error] = app.errors
    expect(error).toBeInstanceOf(RefusalError)
    expect(error).toMatchObject({
      code: "SLUICE_RATE_LIMIT_EXCEEDED",
      status: 429,
      statusCode: 429,
      expose: true,
      decision: { allowed: false, policy: "ip-1m" },
      rejection: { status: 429, body: expect.stringContaining("quota-exceeded") },
    })
    expect(app.errors).toHaveLength(1)
  })

  it("is the framework's own handler by default, and the headers remain set", async () => {
    const response = await second(await start({ options: rule() }))
    expect(response.status).toBe(429)
    expect(Object.fromEntries(response.headers)).toMatchObject(told)
    expect(await response.text()).toContain("Refused by rate limit")
  })

  it("receives the response of onRejected with its headers, even if onRejected is asynchronous", async () => {
    for (const wrap of [<T>(value: T) => value, <T>(value: T) => Promise.resolve(value)]) {
      const lines = [
        ["X-Own", "yes"],
        ["Content-Security-Policy", "default-src 'none'"],
        ["Content-Type", "text/own"],
      ] as const
      const onRejected = () => wrap({ status: 403, headers: lines, body: "own" })
      const app = await start({ options: { ...rule(), onRejected }, answer: "json" })
      const { status, headers } = await second(app)
      expect(status).toBe(403)
      expect(Object.fromEntries(headers)).toMatchObject({
        ...told,
        "x-own": "yes",
        "content-security-policy": "default-src 'none'",
        "content-type": expect.stringContaining("application/json"),
      })
      expect(app.errors).toMatchObject([{ status: 403, rejection: { body: "own" } }])
    }
  })

  it("receives refusals of a shared limiter, and Retry-After is set even if other headers are off", async () => {
    const { throwOnRefusal, ...others } = rule()
    const limiter = createLimiter<object>({ ...others, headers: false })
    const response = await second(await start({ options: { limiter, throwOnRefusal }, answer: "json" }))
    expect([response.status, response.headers.get("retry-after"), response.headers.get("ratelimit")]).toEqual(
      [429, "61", null],
    )
  })

  it("receives no refusals if the option is false", async () => {
    const app = await start({ options: { ...rule(), throwOnRefusal: false }, answer: "status" })
    expect([(await second(app)).status, app.errors]).toEqual([429, []])
  })

  it("cannot be enabled with a string as throwOnRefusal", async () => {
    await expect(start({ options: { ...rule(), throwOnRefusal: "yes" } })).rejects.toThrow(
      'throwOnRefusal: "yes" is not a boolean; accepted: true or false',
    )
  })
})
