import { setImmediate as nextTurn } from "node:timers/promises"
import { createLimiter } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import fastify from "fastify"
import { expect, it } from "vitest"
import { rateLimit } from "./index.ts"

const QUEUE = {
  limit: 1,
  window: "1 second",
  algorithm: "fixed-window",
  throttle: { kind: "queue" },
} as const

it.each(["its own", "a shared"])(
  "the plugin with %s limiter closes without waiting for the requests that it holds",
  async (whose) => {
    const clock = manualClock()
    const options = { ...QUEUE, clock }
    let arrived = 0
    const skip = () => {
      arrived++
      return false
    }
    const app = fastify()
    const limiter = createLimiter<object>({ ...options, skip, name: "shared" })
    await app.register(rateLimit, whose === "a shared" ? { limiter } : { ...options, skip })
    app.get("/", async () => "ok")
    const url = await app.listen({ port: 0, host: "127.0.0.1" })
    expect((await fetch(url)).status).toBe(200)
    const held = fetch(url)
    while (arrived < 2) await nextTurn()
    // The app finishes closing when the server has responded to all requests, although the clock does not advance.
    const closed = app.close()
    const response = await held
    expect([response.status, response.headers.get("retry-after")]).toEqual([503, "1"])
    await closed
    if (whose === "a shared") expect((await limiter.decide({})).allowed).toBe(true)
    await limiter.close()
  },
)

it("the plugin holds requests to a route that has its own rule", async () => {
  const clock = manualClock()
  const app = fastify()
  await app.register(rateLimit, { clock, limit: 100, window: "1 minute" })
  const times: number[] = []
  app.get("/", { config: { rateLimit: QUEUE } }, async () => {
    times.push(clock.now() - Date.UTC(2024, 0))
    return "ok"
  })
  await app.inject("/")
  const held = app.inject("/")
  for (let i = 0; i < 20; i++) await nextTurn()
  clock.advance(1_000)
  expect((await held).statusCode).toBe(200)
  expect(times).toEqual([0, 1_000])
  await app.close()
})
