import { createLimiter } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import { afterAll, describe, expect, it } from "vitest"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { callsBetween, callsOf, keysWithoutTtl } from "./counted.ts"

const MINUTE = 60_000
const HOUR = 60 * MINUTE

const { server, client } = await redisForTests()
afterAll(async () => {
  expect(await keysWithoutTtl(server)).toEqual([])
})

describe("a request with several limits", () => {
  const month = 30 * 24 * HOUR
  const rules = [
    { name: "hour", limit: 500, window: month, field: "user" },
    { name: "minute", limit: 10, window: month / 2, field: "user" },
    { name: "all", field: "service", limit: 1_000, window: month },
  ]

  /**
   * Creates a limiter whose script the server has loaded, and a function that returns the Redis commands of one
   * decision.
   */
  async function open(denyCacheMs: number) {
    const store = redisStore({ client, prefix: `c${denyCacheMs}:`, denyCacheMs })
    const limiter = createLimiter<{ user: string }>({
      store,
      rules,
      service: "shop",
      fields: { user: ({ user }) => user },
      storeTimeoutMs: 20_000,
    })
    await limiter.decide({ user: "first" })
    const asked = async (user: string) => {
      const before = await callsOf(server)
      const decision = await limiter.decide({ user })
      expect(decision.degraded).toBe(false)
      return { allowed: decision.allowed, calls: callsBetween(before, await callsOf(server)) }
    }
    return { limiter, asked }
  }

  it("needs one round trip, and takes no units of any limit if it is refused", async () => {
    const { limiter, asked } = await open(0)
    const { allowed, calls } = await asked("ann")
    expect([allowed, calls.evalsha]).toEqual([true, 1])
    for (let i = 0; i < 9; i++) await limiter.decide({ user: "ann" })
    for (let i = 0; i < 20; i++) {
      const refused = await asked("ann")
      expect([refused.allowed, refused.calls.evalsha]).toEqual([false, 1])
    }
    const { checks } = await limiter.peek({ user: "ann" })
    expect(checks.map(({ policy: name, remaining }) => [name, remaining])).toEqual([
      ["hour", 490],
      ["minute", 0],
      ["all", 989],
    ])
    await limiter.close()
  })
})
