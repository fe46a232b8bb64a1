import type { Decision, Limiter } from "@sluice/core"
import fastify, { type FastifyReply, type FastifyRequest } from "fastify"
import { expectTypeOf } from "vitest"
import { rateLimit } from "./index.ts"

// Compiled by the type checker, never run.

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
// @ts-expect-error: a limiter has its own limit
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
// @ts-expect-error: a rule needs a window
app.get("/e", { config: { rateLimit: { limit: 5 } } }, handler)
// @ts-expect-error: a route has a rule, not a limiter's options
app.get("/f", { config: { rateLimit: { limit: 5, window: "1 minute", store: "memory" } } }, handler)
