import { Redis } from "ioredis"
import { expect, it, onTestFinished } from "vitest"
import { manualClock } from "../../packages/core/src/ground/manual-clock.ts"
import { createLimiter } from "../../packages/core/src/limiter/create-limiter.ts"
import { redisStore } from "../../packages/redis/src/redis-store.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { callsBetween, callsOf } from "./counted.ts"

const { server } = await redisForTests()

it("each of two processes that share a limit reports a client only once, however often the client is refused", async () => {
  const clock = manualClock()
  const reports: string[] = []
  const limiters = ["one", "other"].map((process) => {
    const client = new Redis(server.port, server.host)
    const store = redisStore({ client, clock, timeoutMs: 10_000 })
    const limiter = createLimiter({
      ...{ service: "shop", limit: 10, window: "1 hour", notify: [80, 100] },
      ...{ store, clock, storeTimeoutMs: 10_000 },
    })
    limiter.on("near-limit", ({ partition, threshold, used }) =>
      reports.push(`${process}: ${partition} ${threshold} % ${used}`),
    )
    limiter.on("first-refusal", ({ policy }) => reports.push(`${process}: refused by ${policy}`))
    onTestFinished(async () => {
      await limiter.close()
      await store.close()
      client.disconnect()
    })
    return limiter
  })
  const client = { remoteAddress: "192.0.2.7" }
  for (let n = 0; n < 10; n++) await limiters[n % 2]?.decide(client)
  expect(reports.splice(0)).toEqual([
    "other: 192.0.2.7 80 % 8",
    "one: 192.0.2.7 80 % 9",
    "other: 192.0.2.7 100 % 10",
  ])
  // Each process calls Redis once more, and then repeats the cached refusal.
  const before = await callsOf(server)
  for (let n = 0; n < 20; n++) await limiters[n % 2]?.decide(client)
  expect(callsBetween(before, await callsOf(server)).evalsha).toBe(2)
  expect(reports).toEqual(["one: refused by ip-1h", "one: 192.0.2.7 100 % 10", "other: refused by ip-1h"])
})
