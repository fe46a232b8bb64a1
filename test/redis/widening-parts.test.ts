import { memoryStore } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import { expect, it } from "vitest"
import { manualClock } from "../../packages/core/src/ground/clock.ts"
import type { Policy } from "../../packages/core/src/ground/policy.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"

const { client } = await redisForTests()

const START_MS = Date.UTC(2024, 0, 1)
const POLICY: Omit<Policy, "algorithm"> = {
  name: "parts",
  counter: "parts",
  limit: 1_000_000,
  windowMs: 240_000,
  align: "epoch",
  buckets: 4,
}

/** The units of consecutive minutes. A base-64 number gets another digit at 64, 4,096 and 262,144. */
it.each([
  [[1, 63, 1, 1, 1, 1, 1]],
  [[1, 64, 1, 1, 1, 1, 1]],
  [[64, 63, 64, 0, 1, 4_095, 1]],
  [[4_096, 1, 1, 1, 1, 1, 1]],
  [[1, 4_096, 0, 0, 1, 262_143, 262_144, 1, 1, 1, 1, 1]],
])(
  "parts use exactly as many digits as the largest part needs, in Redis and in memory: %j",
  async (units) => {
    await client.flushall()
    const clock = manualClock(START_MS)
    const redis = redisStore({ client, clock, timeoutMs: 20_000 })
    const memory = memoryStore({ clock })
    try {
      for (const algorithm of ["sliding-window", "sliding-window-strict"] as const) {
        const policy: Policy = { ...POLICY, counter: algorithm, algorithm }
        for (const [minute, cost] of units.entries()) {
          clock.set(START_MS + minute * 60_000)
          const asked = [{ policy, partition: "", cost, shadow: false }]
          const expected = memory.take(asked)
          const answer = await redis.take(asked)
          expect(answer.checks[0]?.state).toEqual(expected.checks[0]?.state)
        }
      }
    } finally {
      await redis.close()
      await memory.close()
    }
  },
)
