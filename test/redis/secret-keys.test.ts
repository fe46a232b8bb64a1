import { createLimiter, type LimiterOptions, type RequestFacts } from "@sluice/core"
import { redisKey, redisStore } from "@sluice/redis"
import { beforeEach, expect, it } from "vitest"
import { redisForTests } from "../servers/redis-for-tests.ts"

const { client } = await redisForTests()
beforeEach(() => client.flushall())

const TOKEN = "Bearer sk_live_4eC39HqLyjWDarjtT1zdp7dc"
const request: RequestFacts = { remoteAddress: "192.0.2.7", headers: { authorization: TOKEN } }

/**
 * Creates a limiter that behaves as if it ran in another process, because it shares only Redis with the other limiters.
 */
function process(options: Partial<LimiterOptions<RequestFacts>> = {}) {
  const store = redisStore({ client, timeoutMs: 20_000 })
  const penalty = { refusals: 2, within: "1 minute", for: "1 minute" }
  return createLimiter({
    ...{ service: "shop", field: "header:authorization", limit: 2, window: "1 hour", penalty, store },
    ...{ storeTimeoutMs: 20_000, ...options },
  } as LimiterOptions<RequestFacts>)
}

async function contents(): Promise<string> {
  const keys = await client.keys("*")
  return JSON.stringify([keys, await Promise.all(keys.map((key) => client.get(key)))])
}

it("Redis never contains a token, and two processes share the counter of a client", async () => {
  const [one, other] = [process(), process()]
  const verdicts = []
  for (const limiter of [one, other, one, other]) verdicts.push((await limiter.decide(request)).allowed)
  expect(verdicts).toEqual([true, true, false, false])
  await one.block(request, { for: "1 hour" })
  const stored = await contents()
  expect(stored).not.toMatch(/sk_live|Bearer|4eC39/)
  const [{ counter } = {}] = await other.explain(request)
  expect(stored).toContain(counter && redisKey(counter))
  await other.unblock(request)
  await other.reset(request)
  expect(await one.peek(request)).toMatchObject({ allowed: true, remaining: 2 })
})

it("Redis contains no address if hashKeys is set, and different secrets have separate counters", async () => {
  const [one, same, other] = ["a", "a", "b"].map((hashSecret) =>
    process({ field: "ip", hashKeys: true, hashSecret }),
  )
  const remaining = []
  for (const limiter of [one, same, other]) remaining.push((await limiter?.decide(request))?.remaining)
  expect(remaining).toEqual([1, 0, 1])
  expect(await contents()).not.toContain("192.0.2.7")
})
