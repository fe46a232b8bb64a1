import { decisionOn } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { Elysia } from "elysia"
import { describe, expect, it } from "vitest"
import { type RateLimitOptions, rateLimit } from "./elysia.ts"

// test/packages/fetch.check.ts runs an app on Node and on Bun, whose servers provide the address.

function once(more: object = {}): RateLimitOptions {
  const clientAddress = (request: Request) => request.headers.get("x-address") ?? "192.0.2.1"
  return { limit: 1, window: "1 minute", clock: manualClock(), clientAddress, ...more } as RateLimitOptions
}

const send = (app: Pick<Elysia, "handle">, path: string, init?: RequestInit): Promise<Response> =>
  app.handle(new Request(`http://shop.example${path}`, init))

async function statuses(app: Pick<Elysia, "handle">, ...paths: readonly string[]): Promise<number[]> {
  const all: number[] = []
  for (const path of paths) all.push((await send(app, path)).status)
  return all
}

describe("the plugin for Elysia", () => {
  it("limits routes before and after it, unknown routes, and errors, with the quota on each response", async () => {
    const told: number[] = []
    const refundWhen = (_request: Request, status: number) => told.push(status) < 0
    const app = new Elysia()
      .get("/before", "before")
      .use(rateLimit(once({ limit: 4, refundWhen })))
      .get("/after", ({ request }) => ({ remaining: decisionOn(request)?.remaining }))
      .get("/fails", () => {
        throw new Error("oops")
      })
    const left: (string | null)[] = []
    for (const path of ["/before", "/after", "/fails", "/none", "/after"]) {
      left.push((await send(app, path)).headers.get("ratelimit"))
    }
    expect(left).toEqual([3, 2, 1, 0, 0].map((r) => `"ip-1m";r=${r};t=61`))
    expect(told).toEqual([200, 200, 500, 404, 429])
    expect(await (await send(app, "/after", { headers: { "x-address": "192.0.2.2" } })).json()).toEqual({
      remaining: 3,
    })
  })

  it("adds the headers of earlier hooks to a refusal, such as those for CORS", async () => {
    const app = new Elysia()
      .onRequest(({ set }) => {
        set.headers["access-control-allow-origin"] = "*"
      })
      .use(rateLimit(once()))
      .get("/", "ok")
    await send(app, "/")
    const { status, headers } = await send(app, "/")
    expect([status, headers.get("access-control-allow-origin"), headers.get("retry-after")]).toEqual([
      ...[429, "*", "61"],
    ])
  })

  it("limits the whole app by each limiter of its plugins and groups", async () => {
    const told = new Set<string>()
    const named = (name: string, limit: number) =>
      rateLimit(once({ name, limit, refundWhen: () => told.add(name).size === 0 }))
    const limits = new Elysia({ name: "limits" }).use(named("wide", 9)).use(named("narrow", 3))
    const app = new Elysia()
      .use(limits)
      .use(limits)
      .group("/group", (group) => group.use(named("group", 5)).get("/in", "in"))
      .get("/", "ok")
    const response = await send(app, "/")
    expect(response.headers.get("ratelimit")).toBe('"wide";r=8;t=61, "narrow";r=2;t=61, "group";r=4;t=61')
    expect([...told].sort()).toEqual(["group", "narrow", "wide"])
    expect(await statuses(app, "/group/in", "/", "/")).toEqual([200, 200, 429])
  })

  it("responds with 500 if the address cannot be known, because no server listens", async () => {
    const app = new Elysia().use(rateLimit(once({ clientAddress: undefined }))).get("/", "ok")
    const response = await send(app, "/")
    expect([response.status, await response.text()]).toEqual([
      500,
      expect.stringMatching(/clientAddress: is missing.*does not listen/),
    ])
  })

  it("rejects an app that is not compiled, because Elysia would not call the limiter", () => {
    expect(() => new Elysia({ aot: false }).use(rateLimit(once()))).toThrow(/aot: is false/)
  })

  it("keeps the permit of a streamed response until its body has ended", async () => {
    const rules = [{ name: "all", field: "service", concurrent: 1 }]
    const limit = rateLimit({ rules })
    const app = new Elysia().use(limit).get("/", () => new Response(new Blob(["a"]).stream()))
    const response = await send(app, "/")
    expect([limit.limiter.status.inFlight, await statuses(app, "/")]).toEqual([1, [429]])
    expect([await response.text(), limit.limiter.status.inFlight]).toEqual(["a", 0])
  })
})
