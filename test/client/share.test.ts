import { paced } from "@sluice/client"
import { createLimiter } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import { Redis } from "ioredis"
import { expect, it, onTestFinished } from "vitest"
import { listen } from "../contracts/adapter/listen.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"

const { server } = await redisForTests()

/** Returns a paced fetch as another process would create it, with a new connection to Redis. */
function callerOf(limit: number, maxWaitMs: number) {
  const client = new Redis(server.port, server.host)
  const limiter = createLimiter<{ key: string }>({
    ...{ service: "calls", field: "key", fields: { key: (call) => call.key }, limit, window: "1 day" },
    ...{ store: redisStore({ client }), storeTimeoutMs: 20_000 },
  })
  onTestFinished(async () => {
    await limiter.close()
    client.disconnect()
  })
  const share = {
    acquire: (key: string, signal?: AbortSignal) => limiter.acquire({ key }, { signal, maxWaitMs }),
  }
  return paced(fetch, { share })
}

it("callers that share a limiter in Redis together send no more calls than the limiter admits", async () => {
  let asked = 0
  const { url, close } = await listen((_req, res) => {
    asked++
    res.end()
  })
  onTestFinished(close)
  const callers = [callerOf(10, 1_000), callerOf(10, 1_000)]
  const outcomes = await Promise.allSettled(Array.from({ length: 24 }, (_, i) => callers[i % 2]?.(url)))
  expect(asked).toBe(10)
  const failed = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason] : []))
  expect(failed).toHaveLength(14)
  for (const error of failed)
    expect(error).toMatchObject({
      code: "SLUICE_PACE_SHARE_FAILED",
      cause: { name: "RateLimitExceededError" },
    })
})
