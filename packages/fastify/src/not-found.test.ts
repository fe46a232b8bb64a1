import { manualClock } from "@sluice/core/testing"
import fastify, { type FastifyInstance } from "fastify"
import { describe, expect, it } from "vitest"
import { type RateLimitOptions, rateLimit } from "./index.ts"

const clock = manualClock()
const plugin = { clock, limit: 2, window: "1 minute" } as const
const own = { limit: 4, window: "1 minute" } as const
const handler = async () => "ok"

async function quota(app: FastifyInstance, url: string): Promise<unknown> {
  const { statusCode, headers } = await app.inject(url)
  return statusCode === 429 ? 429 : headers.ratelimit
}

describe.each(["before", "after"] as const)("a 404 handler that is set %s the plugin", (when) => {
  async function appWith(options: object): Promise<FastifyInstance> {
    const app = fastify()
    const set = () => app.setNotFoundHandler((_request, reply) => void reply.code(404).send("none"))
    if (when === "before") set()
    await app.register(rateLimit, options as RateLimitOptions)
    if (when === "after") set()
    app.get("/", handler)
    return app
  }

  it("is limited by the notFound rule instead of the plugin's inline rule", async () => {
    const app = await appWith({ ...plugin, notFound: own })
    for (const left of [3, 2, 1, 0]) expect(await quota(app, `/${left}`)).toBe(`"not-found";r=${left};t=61`)
    expect(await quota(app, "/none")).toBe(429)
    expect(await quota(app, "/")).toBe('"ip-1m";r=1;t=61')
  })

  it("is not limited with notFound: false", async () => {
    const app = await appWith({ ...plugin, notFound: false })
    for (let i = 0; i < 5; i++) expect(await quota(app, "/none")).toBeUndefined()
    expect(await quota(app, "/")).toBe('"ip-1m";r=1;t=61')
  })

  it("is limited even if no other route is", async () => {
    const app = await appWith({ clock, notFound: { ...own, name: "unknown" } })
    expect(await quota(app, "/none")).toBe('"unknown";r=3;t=61')
    expect(await quota(app, "/")).toBeUndefined()
  })

  it.each(["body:a", "user"])("is limited as soon as the field %s is available", async (field) => {
    const fields = { user: () => "u" }
    const app = await appWith({ ...plugin, fields, notFound: { ...own, field, onMissing: "shared" } })
    expect(await quota(app, "/none")).toBe('"not-found";r=3;t=61')
    expect(await quota(app, "/")).toBe('"ip-1m";r=1;t=61')
  })

  it("is limited in the hook of the notFound rule", async () => {
    const app = await appWith({ ...plugin, notFound: { ...own, hook: "preHandler" } })
    app.addHook("preValidation", async (_request, reply) => void reply.code(401).send())
    expect(await quota(app, "/none")).toBeUndefined()
    expect(await quota(app, "/")).toBe('"ip-1m";r=1;t=61')
  })

  it("is refused with the onRejected of the notFound rule", async () => {
    const onRejected = () => ({ status: 404, headers: [], body: "hidden" })
    const app = await appWith({ ...plugin, notFound: { ...own, limit: 1, onRejected } })
    const told = []
    for (const url of ["/a", "/b", "/", "/", "/"]) {
      const { statusCode, body } = await app.inject(url)
      told.push([statusCode, body.slice(0, 6)])
    }
    expect(told).toEqual([
      [404, "none"],
      [404, "hidden"],
      [200, "ok"],
      [200, "ok"],
      [429, '{"type'],
    ])
  })
})

it("a known route is limited by the plugin's rule, even if its handler calls the 404 handler", async () => {
  const app = fastify()
  await app.register(rateLimit, { ...plugin, notFound: own })
  app.get("/", (_request, reply) => void reply.callNotFound())
  expect(await quota(app, "/")).toBe('"ip-1m";r=1;t=61')
})

it("notFound limits unknown paths only in the scope that has registered the plugin", async () => {
  const app = fastify()
  await app.register(
    async (scope) => {
      await scope.register(rateLimit, { clock, notFound: own })
      scope.setNotFoundHandler(handler)
    },
    { prefix: "/in" },
  )
  expect(await quota(app, "/in/none")).toBe('"not-found";r=3;t=61')
  expect(await quota(app, "/none")).toBeUndefined()
})

it.each([
  ["notFound: true is not a rule; accepted: false, or a rule such as", true],
  ["notFound.limit: 0 is not a limit", { ...own, limit: 0 }],
  ["notFound.hook: 'onSend' is not a hook", { ...own, hook: "onSend" }],
])("an invalid notFound prevents the start of the app: %s", async (message, notFound) => {
  const app = fastify()
  app.register(rateLimit, { ...plugin, notFound } as unknown as RateLimitOptions)
  await expect(app.ready()).rejects.toThrow(message)
})
