import type { Clock } from "@sluice/core"
import { expectLimited, manualClock } from "@sluice/core/testing"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { type Served, serve } from "./demo/serve.ts"
import { createApp as createExpressApp } from "./express.ts"
import { createApp as createFastifyApp } from "./fastify.ts"
import { createApp as createKoaApp } from "./koa.ts"

interface Options {
  readonly clock: Clock
  readonly trustedProxies: string[]
}

const FRAMEWORKS: readonly { name: string; start: (options: Options) => Promise<Served>; stacks: boolean }[] =
  [
    { name: "express", start: (options) => serve(createExpressApp(options)), stacks: true },
    { name: "koa", start: (options) => serve(createKoaApp(options).callback()), stacks: true },
    // In Fastify, a route's own rule replaces the app's rule.
    { name: "fastify", start: async (options) => serve(await createFastifyApp(options)), stacks: false },
  ]

describe.each(FRAMEWORKS)("the $name example", ({ start, stacks }) => {
  const clock = manualClock()
  let server: Served

  beforeEach(async () => {
    clock.resetAll()
    server = await start({ clock, trustedProxies: ["loopback"] })
  })
  afterEach(() => server.close())

  const get = (path: string, from = "203.0.113.1") =>
    fetch(`${server.url}${path}`, { headers: { "x-forwarded-for": from } })

  it("admits 100 requests a minute from each address", async () => {
    const first = await get("/")
    expect(first.headers.get("ratelimit-policy")).toBe('"ip-1m";q=100;w=60')
    expect(await first.json()).toEqual({ hello: "world", remaining: 99 })
    await expectLimited(() => get("/"), 99)
    await expectLimited(() => get("/", "203.0.113.2"), 100)
  })

  it("admits three searches a second, and one more after exactly the wait in Retry-After", async () => {
    expect(await (await get("/search")).json()).toEqual({ found: [], remaining: 2 })
    const refused = await expectLimited(() => get("/search"), 2)
    expect(await refused.json()).toMatchObject({ status: 429, "violated-policies": ["search"] })

    const seconds = Number(refused.headers.get("retry-after"))
    clock.advance((seconds - 1) * 1000)
    expect((await get("/search")).status).toBe(429)
    clock.advance(1000)
    expect((await get("/search")).status).toBe(200)
  })

  it(`${stacks ? "counts" : "does not count"} searches against the app's limit`, async () => {
    for (let search = 0; search < 3; search++) await get("/search")
    expect(await (await get("/")).json()).toMatchObject({ remaining: stacks ? 96 : 99 })
  })
})
