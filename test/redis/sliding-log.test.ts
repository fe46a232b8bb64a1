import fc from "fast-check"
import { beforeAll, describe, expect, it } from "vitest"
import { manualClock } from "../../packages/core/src/ground/clock.ts"
import { keyNamer } from "../../packages/redis/src/key.ts"
import { RedisStore } from "../../packages/redis/src/redis-store.ts"
import { PEEK, REFUND, TAKE } from "../../packages/redis/src/scripts.ts"
import { logTraces } from "../log-traces.ts"
import { playLog } from "../naive-log.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { examples } from "../test-length.ts"
import { KeysOnAClock } from "./keys-on-a-clock.ts"

const { client } = await redisForTests()
let made = 0

beforeAll(async () => {
  for (const { text } of [TAKE, PEEK, REFUND]) await client.script("LOAD", text)
})

describe.concurrent("the sliding log in Redis", { timeout: 600_000 }, () => {
  it.each([8_201, 8_202])("matches a reference that stores the time of every unit (%i)", async (seed) => {
    await fc.assert(
      fc.asyncProperty(logTraces(), async (trace) => {
        const clock = manualClock(trace.startMs)
        const prefix = `${made++}:`
        const name = keyNamer(prefix)({ policy: trace.policies[0], partition: "alice" })
        const keys = new KeysOnAClock(client, clock, [name])
        const store = new RedisStore({
          commands: keys.commands,
          prefix,
          denyCacheMs: 0,
          timeoutMs: 20_000,
          clock,
          isWide: true,
        })
        try {
          await playLog(trace, store, clock, {
            forgets: async () => (await keys.expire()).length > 0,
            expectKeptUntil(emptyAtMs) {
              const [fromMs, toMs] = keys.at(name)?.expiresMs ?? [Number.NaN, Number.NaN]
              expect(fromMs).toBeLessThanOrEqual(emptyAtMs)
              expect(toMs).toBeGreaterThanOrEqual(emptyAtMs)
              keys.pin(name, emptyAtMs)
            },
          })
        } finally {
          store.close()
        }
      }),
      { seed, numRuns: examples(20, 60) },
    )
  })
})
