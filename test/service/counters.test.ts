import { setTimeout as sleep } from "node:timers/promises"
import { afterAll, beforeAll, expect, it } from "vitest"
import { openCounters } from "../../packages/service/src/program/counters.ts"
import { createLog } from "../../packages/service/src/program/log.ts"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis?.stop())

it("giving back has as long as --store-timeout says, and not what the store has by itself", async () => {
  const settings = { urls: [`redis://${redis.host}:${redis.port}`], isCluster: false, prefix: "" }
  const { store, isReachable, close } = await openCounters(settings, 60_000, createLog("silent"))
  try {
    await expect.poll(isReachable, { timeout: 60_000 }).toBe(true)
    const policy = {
      name: "daily",
      counter: "daily",
      algorithm: "fixed-window",
      align: "first-hit",
      limit: 10,
      windowMs: 86_400_000,
    } as const
    const check = { policy, partition: "a", cost: 4, shadow: false }
    const [answer] = await store.take([[check]], 60_000)
    const after = answer?.checks[0]?.state
    if (after === undefined) throw new Error("Redis has not counted")
    redis.freeze()
    const refunding = store.refund([{ policy, partition: "a", units: 3, after }])
    // Several times what the store has by itself: by then it would have been rejected.
    await sleep(300)
    redis.thaw()
    await refunding
    const [seen] = await store.peek([[{ ...check, cost: 0 }]], 60_000)
    expect(seen?.checks[0]?.state.current).toBe(1)
  } finally {
    await close()
  }
})
