import { redisStore } from "@sluice/redis"
import { Redis } from "ioredis"
import { expect, it } from "vitest"
import type { Policy } from "../../packages/core/src/ground/policy.ts"
import { takeEach } from "../../packages/core/src/stores/testing/take-each.ts"
import { startRedis } from "../servers/redis-server.ts"
import { keysWithoutTtl } from "./counted.ts"

it("a bucket that refills in millions of years counts normally and does not affect other checks", async () => {
  const server = await startRedis()
  const client = new Redis(server.port, server.host)
  const store = redisStore({ client, timeoutMs: 10_000 })
  try {
    const policy: Policy = {
      name: "slow",
      counter: "slow",
      algorithm: "token-bucket",
      align: "epoch",
      limit: 1,
      windowMs: 7 * 86_400_000,
      burst: 10_000_000_000,
    }
    const beside: Policy = { ...policy, name: "beside", counter: "beside", burst: 10 }
    const ask = (one: Policy, cost: number) => [{ policy: one, partition: "", cost, shadow: false }]
    const answers = await takeEach(store, [ask(beside, 1), ask(policy, 9_000_000_000), ask(beside, 1)])
    expect(answers.map(({ granted }) => granted)).toEqual([true, true, true])
    const refused = await store.take(ask(policy, 2_000_000_000))
    expect(refused?.granted).toBe(false)
    expect(await keysWithoutTtl(server)).toEqual([])
  } finally {
    await store.close()
    client.disconnect()
    await server.stop()
  }
})
