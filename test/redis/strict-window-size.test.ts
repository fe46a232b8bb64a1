import { redisStore } from "@sluice/redis"
import { expect, it } from "vitest"
import { manualClock } from "../../packages/core/src/ground/manual-clock.ts"
import type { Policy } from "../../packages/core/src/ground/policy.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"

const { client } = await redisForTests()

const START_MS = Date.UTC(2024, 0, 1)

/**
 * Takes `units` in each of several seconds from a window of a minute in 60 parts. Returns the value in Redis and its
 * size.
 */
async function kept(
  limit: number,
  units: number,
  seconds: number,
): Promise<{ value: string; bytes: number }> {
  await client.flushall()
  const clock = manualClock(START_MS)
  const store = redisStore({ client, clock, timeoutMs: 20_000 })
  const policy: Policy = {
    name: "strict",
    counter: "AbCdEfGh",
    algorithm: "sliding-window-strict",
    limit,
    windowMs: 60_000,
    align: "epoch",
    buckets: 60,
  }
  try {
    for (let second = 0; second < seconds; second++) {
      clock.set(START_MS + second * 1_000)
      const answer = await store.take([{ policy, partition: "203.0.113.27", cost: units, shadow: false }])
      expect(answer?.granted).toBe(true)
    }
  } finally {
    await store.close()
  }
  const [key] = (await client.keys("*")) as [string]
  return { value: (await client.get(key)) as string, bytes: (await client.memory("USAGE", key)) as number }
}

it.each([
  ["1 unit a second, with a limit of 60", 60, 1, 60],
  ["10 units a second, with a limit of 1,000", 1_000, 10, 61],
  ["160 units a second, with a limit of 10,000", 10_000, 160, 61],
  ["4,000 units a second, with a limit of 250,000", 250_000, 4_000, 61],
])(
  "60 used sub-windows take at most 160 bytes in Redis, and 320 with the key: %s",
  async (_, limit, units, seconds) => {
    const { value, bytes } = await kept(limit, units, seconds)
    expect(value.length).toBeLessThanOrEqual(160)
    expect(bytes).toBeLessThanOrEqual(320)
  },
)

it("a new client's counter takes little memory, and its sub-windows get more digits when needed", async () => {
  expect((await kept(1_000, 5, 2)).value.length).toBeLessThanOrEqual(30)
  const { value } = await kept(600_000_000, 9_000_000, 61)
  // Each part has four digits, because nine million is less than 64 ** 4.
  expect(value).toMatch(/:4[0-o]{240}$/)
})
