import { type Clock, manualClock } from "@sluice/core"
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
    clock.set(Date.UTC(2024, 0, 1))
    server = await start({ clock, trustedProxies: ["loopback"] })
  })
  afterEach(() => server.close())

  const get = (path: string, from = "203.0.113.1") =>
    fetch(`${server.url}${path}`, { headers: { "x-forwarded-for": from } })

  async function admitted(times: number, path: string, from?: string): Promise<number> {
    let count = 0
    for (let time = 0; time < times; time++) if ((await get(path, from)).status === 200) count++
    return count
  }

  it("admits 100 requests a minute from each address", async () => {
    const first = await get("/")
    expect(first.headers.get("ratelimit-policy")).toBe('"ip-1m";q=100;w=60')
    expect(await first.json()).toEqual({ hello: "world", remaining: 99 })
    expect(await admitted(104, "/")).toBe(99)
    expect(await admitted(1, "/", "203.0.113.2")).toBe(1)
  })

  it("admits three searches a second, and one more after exactly the wait in Retry-After", async () => {
    expect(await (await get("/search")).json()).toEqual({ found: [], remaining: 2 })
    expect(await admitted(5, "/search")).toBe(2)
    const refused = await get("/search")
    expect(refused.status).toBe(429)
    expect(await refused.json()).toMatchObject({ status: 429, "violated-policies": ["search"] })

    const seconds = Number(refused.headers.get("retry-after"))
    expect(seconds).toBeGreaterThanOrEqual(1)
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
