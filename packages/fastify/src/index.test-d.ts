import type { Decision, Limiter, Rejection } from "@sluice/core"
import fastify, { type FastifyReply, type FastifyRequest } from "fastify"
import { expectTypeOf } from "vitest"
import { type FastifySluice, type RefusalError, rateLimit } from "./index.ts"

// The type checker compiles this file, but it is never run.

const app = fastify()
declare const limiter: Limiter<FastifyRequest>

app.register(rateLimit, { limit: 100, window: "1 minute" })
app.register(rateLimit, { limiter, hook: "preHandler" })
app.register(rateLimit, {})
app.register(rateLimit)
app.register(rateLimit, {
  limit: (request) => {
    expectTypeOf(request).toEqualTypeOf<FastifyRequest>()
    return 5
  },
  window: 1000,
  fields: { agent: (request) => request.headers["user-agent"] },
})
app.register(rateLimit, {
  limit: 100,
  window: "1 minute",
  onRejected: (request, _rejection, _decision, reply) => {
    expectTypeOf(request).toEqualTypeOf<FastifyRequest>()
    expectTypeOf(reply).toEqualTypeOf<FastifyReply>()
    reply.code(429).send({ error: "slow down" })
    return false
  },
})
// @ts-expect-error: a limit needs a window
app.register(rateLimit, { limit: 100 })
// @ts-expect-error: an environment variable may be undefined
app.register(rateLimit, { limit: 100, window: process.env.WINDOW })
app.register(rateLimit, { service: "shop", hook: "preHandler" })
// @ts-expect-error: there is no hook after the handler
app.register(rateLimit, { limit: 1, window: "1 minute", hook: "onSend" })
// @ts-expect-error: a string is not a limit
app.register(rateLimit, { limit: "1", window: "1 minute" })
// @ts-expect-error: a shared limiter already defines the limit
app.register(rateLimit, { limiter: {} })

const handler = async (request: FastifyRequest) => {
  expectTypeOf(request.rateLimit).toEqualTypeOf<Decision | undefined>()
  return request.rateLimit?.remaining
}
app.get("/", handler)
app.get("/a", { config: { rateLimit: false } }, handler)
app.get(
  "/b",
  { config: { rateLimit: { limit: 5, window: "1 minute", group: "g", hook: "preHandler" } } },
  handler,
)
app.get("/c", { config: { rateLimit: { limit: (request) => request.url.length, window: 1000 } } }, handler)
// @ts-expect-error: true is not a rule
app.get("/d", { config: { rateLimit: true } }, handler)
app.get("/c2", { config: { rateLimit: { concurrent: 2, hold: "1 minute", group: "c" } } }, handler)
app.get("/c3", { config: { rateLimit: { concurrent: (request) => request.url.length } } }, handler)
// @ts-expect-error: a rule with concurrent has no window
app.get("/c4", { config: { rateLimit: { concurrent: 2, window: "1 minute" } } }, handler)
// @ts-expect-error: only a rule with concurrent has a hold
app.get("/c5", { config: { rateLimit: { limit: 2, window: "1 minute", hold: "1 minute" } } }, handler)
app.register(rateLimit, { concurrent: 5, hold: "1 minute" })
// @ts-expect-error: a rule needs a window
app.get("/e", { config: { rateLimit: { limit: 5 } } }, handler)
// @ts-expect-error: a route accepts a rule, but no limiter options
app.get("/f", { config: { rateLimit: { limit: 5, window: "1 minute", store: "memory" } } }, handler)

app.register(rateLimit, { limit: 100, window: "1 minute", notFound: { limit: 10, window: "1 minute" } })
app.register(rateLimit, { notFound: false, throwOnRefusal: true })
// @ts-expect-error: true is not a rule
app.register(rateLimit, { notFound: true })
// @ts-expect-error: throwOnRefusal is a boolean
app.register(rateLimit, { throwOnRefusal: "yes" })
app.register(import("./index.ts"), { limit: 100, window: "1 minute" })
// @ts-expect-error: a limit needs a window
app.register(import("./index.ts"), { limit: 100 })

app.get(
  "/g",
  {
    config: {
      rateLimit: {
        limit: 5,
        window: "1 minute",
        onRejected: (request, rejection, decision, reply) => {
          expectTypeOf(request).toEqualTypeOf<FastifyRequest>()
          expectTypeOf(rejection).toEqualTypeOf<Rejection>()
          expectTypeOf(decision).toEqualTypeOf<Decision>()
          expectTypeOf(reply).toEqualTypeOf<FastifyReply>()
        },
      },
    },
  },
  handler,
)

expectTypeOf(app.sluice).toEqualTypeOf<FastifySluice>()
app.sluice.limiter.on("decision", (decision, request) => {
  expectTypeOf(decision).toEqualTypeOf<Decision>()
  expectTypeOf(request).toEqualTypeOf<FastifyRequest>()
})
const hook = app.sluice.hook({ limit: 5, window: "1 minute", group: "g", onRejected: () => false })
// @ts-expect-error: a hook requires a rule
app.sluice.hook()
// @ts-expect-error: the app itself adds the hook to a route, so this option does not exist
app.sluice.hook({ limit: 5, window: "1 minute", hook: "preHandler" })
// @ts-expect-error: app.sluice belongs to the plugin
app.sluice = { limiter, hook: () => hook }

app.addHook("onRequest", hook)
app.addHook("preParsing", hook)
app.addHook("preValidation", hook)
app.addHook("preHandler", hook)
app.get("/h", { onRequest: hook, preParsing: [hook], preValidation: hook, preHandler: [hook, hook] }, handler)
app.get<{ Params: { id: string } }>("/i/:id", { preHandler: hook }, async ({ params }) => params.id)
app.setNotFoundHandler({ preValidation: hook, preHandler: hook }, handler)
app.setNotFoundHandler({ preHandler: [hook] }, handler)
app.setErrorHandler<RefusalError>((error, _request, reply) => {
  expectTypeOf(error.statusCode).toEqualTypeOf<number>()
  expectTypeOf(error.decision).toEqualTypeOf<Decision>()
  reply.code(error.statusCode).send(error.rejection.body)
})

const secure = fastify({ http2: true })
secure.register(rateLimit, { limit: 100, window: "1 minute" })
secure.addHook("preHandler", secure.sluice.hook({ limit: 5, window: "1 minute" }))
secure.get("/", { preHandler: secure.sluice.hook({ limit: 5, window: "1 minute" }) }, async () => "ok")
secure.setNotFoundHandler(
  { preHandler: [secure.sluice.hook({ limit: 5, window: "1 minute" })] },
  async () => "none",
)
