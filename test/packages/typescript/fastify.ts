import { createLimiter, type Decision } from "@sluice/core"
import { type RateLimitOptions, type RouteRateLimit, rateLimit } from "@sluice/fastify"
import fastify, { type FastifyRequest } from "fastify"

declare module "fastify" {
  interface FastifyRequest {
    /** An app's own authentication adds this. */
    tenant?: { readonly id: string }
  }
}

const options: RateLimitOptions = {
  limit: 100,
  window: "1 minute",
  hook: "preHandler",
  fields: { tenant: (request) => request.tenant?.id },
  field: ["tenant", "ip"],
}
const searches: RouteRateLimit = { group: "searches", limit: 3, window: "1 second", cost: 2 }

export async function createApp(): Promise<ReturnType<typeof fastify>> {
  const app = fastify()
  await app.register(rateLimit, options)
  await app.register(async (scope) => {
    await scope.register(rateLimit, {
      limiter: createLimiter<FastifyRequest>({ name: "admin", limit: 5, window: "1 minute" }),
    })
  })
  app.get("/search", { config: { rateLimit: searches } }, async (request) => {
    const decision: Decision | undefined = request.rateLimit
    return { left: decision?.remaining }
  })
  app.get("/health", { config: { rateLimit: false } }, async () => "ok")
  // @ts-expect-error a misspelled option is not valid
  await app.register(rateLimit, { limit: 100, windw: "1 minute" })
  // @ts-expect-error a misspelled member of a route's rule is not valid
  app.get("/wrong", { config: { rateLimit: { limit: 3, windw: "1 second" } } }, async () => "ok")
  // @ts-expect-error only four hooks are valid
  await app.register(rateLimit, { limit: 100, window: "1 minute", hook: "onSend" })
  return app
}
