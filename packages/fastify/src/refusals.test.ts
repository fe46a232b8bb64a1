import { createLimiter } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import fastify, { type FastifyInstance, type FastifyRequest, type LightMyRequestResponse } from "fastify"
import { describe, expect, it } from "vitest"
import { type RateLimitOptions, RefusalError, rateLimit } from "./index.ts"

const clock = manualClock()
const plugin = { clock, limit: 1, window: "1 minute" } as const
const handler = async () => "ok"

async function appWith(options: object): Promise<FastifyInstance> {
  const app = fastify()
  await app.register(rateLimit, options as RateLimitOptions)
  return app
}

/** Requests a URL twice and returns the second response. With a limit of 1, the second response is a refusal. */
async function second(app: FastifyInstance, url: string): Promise<LightMyRequestResponse> {
  await app.inject(url)
  return app.inject(url)
}

describe("the onRejected function of a route or hook", () => {
  const ours = () => ({ status: 402, headers: [["X-Ours", "yes"]] as const, body: "ours" })
  const route = (onRejected = ours) => ({
    config: { rateLimit: { limit: 1, window: "1 minute", onRejected } },
  })

  it.each<[string, object]>([
    ["instead of the standard response", {}],
    [
      "instead of the plugin's onRejected",
      { onRejected: () => ({ status: 418, headers: [], body: "plugin" }) },
    ],
  ])("sends its response %s, with Retry-After and the rate limit headers", async (_what, more) => {
    const app = await appWith({ ...plugin, ...more })
    app.get("/own", route(), handler)
    app.get("/own-rule", { config: { rateLimit: { limit: 1, window: "1 minute" } } }, handler)
    app.get("/", handler)
    const { statusCode, body, headers } = await second(app, "/own")
    expect([statusCode, body]).toEqual([402, "ours"])
    expect(headers).toMatchObject({
      "x-ours": "yes",
      "retry-after": "61",
      "cache-control": "no-store",
      ratelimit: '"GET /own";r=0;t=61',
    })
    const others = "onRejected" in more ? 418 : 429
    expect((await second(app, "/")).statusCode).toBe(others)
    expect((await second(app, "/own-rule")).statusCode).toBe(others)
  })

  it("receives the request, the standard response, the decision and the reply, and may send the response itself", async () => {
    const app = await appWith({ clock })
    const told: unknown[] = []
    app.get(
      "/:id",
      {
        config: {
          rateLimit: {
            limit: 1,
            window: "1 minute",
            onRejected: (request, { status }, { policy }, reply) => {
              told.push([request.url, status, policy])
              reply.code(status).send({ error: "slow down" })
              return false
            },
          },
        },
      },
      handler,
    )
    const { statusCode, body } = await second(app, "/1")
    expect([statusCode, body, told]).toEqual([429, '{"error":"slow down"}', [["/1", 429, "GET /:id"]]])
  })

  it("also responds on a route that is older than the plugin, and to HEAD requests", async () => {
    const app = fastify()
    app.get("/", route(), handler)
    app.register(rateLimit, { clock })
    expect((await second(app, "/")).body).toBe("ours")
    expect((await app.inject({ method: "HEAD", url: "/" })).statusCode).toBe(402)
  })

  it("responds to refusals by a hook of app.sluice, even if the limiter is shared", async () => {
    const limiter = createLimiter<FastifyRequest>({ ...plugin, limit: 9 })
    const app = await appWith({ limiter })
    const hook = app.sluice.hook({ limit: 1, window: "1 minute", onRejected: ours })
    app.get("/", { preHandler: hook }, handler)
    expect((await second(app, "/")).statusCode).toBe(402)
    await limiter.close()
  })

  it("makes the creation of the route throw if it is not a function", async () => {
    const app = await appWith(plugin)
    expect(() => app.get("/", route("no" as never), handler)).toThrow(
      "route GET / config.rateLimit.onRejected: 'no' is not a function; accepted: (request, rejection, decision, response) =>",
    )
  })
})

describe("with throwOnRefusal, an error handler", () => {
  const throwing = { ...plugin, throwOnRefusal: true }

  it.each<[string, object, object]>([
    ["in onRequest", {}, {}],
    ["in preHandler", { field: "body:a", onMissing: "shared" }, {}],
    ["right before the handler", { field: "user", fields: { user: () => "u" } }, {}],
    ["in a route's own hook", {}, { limit: 1, window: "1 minute", hook: "preValidation" }],
  ])("of the route's scope receives a refusal %s", async (_where, more, own) => {
    const app = await appWith({ ...throwing, ...more })
    const config = Object.keys(own).length === 0 ? {} : { rateLimit: own as never }
    app.setErrorHandler((_error, _request, reply) => reply.send("outer"))
    app.register(async (scope) => {
      scope.setErrorHandler((error, _request, reply) => {
        reply.code(418).send(error instanceof RefusalError ? `inner ${error.decision.refusal}` : "")
      })
      scope.get("/", { config }, handler)
    })
    const { statusCode, body } = await second(app, "/")
    expect([statusCode, body]).toEqual([418, "inner quota"])
  })

  it("receives refusals of hooks and of unknown routes, but only from registrations that set the option", async () => {
    const rule = { limit: 1, window: "1 minute" }
    const app = await appWith({ clock, notFound: rule, throwOnRefusal: true })
    app.setErrorHandler((error, _request, reply) => reply.send(error instanceof RefusalError ? "thrown" : ""))
    app.get("/hook", { preHandler: app.sluice.hook(rule) }, handler)
    app.register(async (scope) => {
      await scope.register(rateLimit, { ...plugin, name: "inner" })
      scope.get("/inner", handler)
    })
    const bodies = []
    for (const url of ["/hook", "/none", "/inner"]) bodies.push((await second(app, url)).body.slice(0, 6))
    expect(bodies).toEqual(["thrown", "thrown", '{"type'])
  })
})
