import { manualClock } from "@sluice/core"
import fastify from "fastify"
import { describe, expect, it } from "vitest"

// Made before anything has loaded the plugin, so nobody has told it of this app's routes.
const app = fastify()
const lonely = fastify()
const strict = { limit: 2, window: "1 minute" } as const

describe("an app that is older than the import", () => {
  it("has the rule of no route passed over in silence", async () => {
    app.get("/early", { config: { rateLimit: strict } as object }, async () => "ok")
    app.get("/plain", async () => "ok")
    const { rateLimit } = await import("./index.ts")
    await app.register(rateLimit, { clock: manualClock(), limit: 5, window: "1 minute" })
    app.get("/late", { config: { rateLimit: strict } }, async () => "ok")
    app.get("/out", { config: { rateLimit: false } }, async () => "ok")

    const early = await app.inject("/early")
    expect([early.statusCode, early.json().message]).toEqual([
      500,
      expect.stringMatching(
        /^Wrong options: route GET \/early config\.rateLimit: was not seen, .*; accepted: import/,
      ),
    ])
    expect((await app.inject("/plain")).headers.ratelimit).toBe('"ip-1m";r=4;t=61')
    expect((await app.inject("/none")).headers.ratelimit).toBe('"ip-1m";r=3;t=61')
    expect((await app.inject("/late")).headers.ratelimit).toBe('"GET /late";r=1;t=61')
    expect((await app.inject("/out")).headers.ratelimit).toBeUndefined()
  })

  it("is told so too where no other route has a rule", async () => {
    lonely.get("/early", { config: { rateLimit: strict } as object }, async () => "ok")
    const { rateLimit } = await import("./index.ts")
    lonely.register(rateLimit, { limit: 5, window: "1 minute" })
    expect((await lonely.inject("/early")).statusCode).toBe(500)
  })
})
