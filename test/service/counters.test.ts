import { once } from "node:events"
import { type AddressInfo, createServer } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { peekStore } from "@sluice/core/stores"
import { afterAll, beforeAll, expect, it } from "vitest"
import { type CounterSettings, openCounters } from "../../packages/service/src/program/counters.ts"
import { createLog } from "../../packages/service/src/program/log.ts"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis?.stop())

/** Returns the settings that select the Redis at this URL. */
function countersAt(url: string, storeTimeoutMs = 1_000): CounterSettings {
  return {
    redis: [url],
    ...{ redisCluster: false, redisPrefix: undefined, mirrors: undefined, lease: false },
    ...{ writeBackMs: undefined, storeTimeoutMs, instances: 1 },
  }
}

/** Creates a log that stores its messages. */
function listeningLog() {
  const said: string[] = []
  return { said, log: createLog("info", { write: (line) => void said.push(JSON.parse(line).msg) }) }
}

it("the log reports a missing connection only once, despite many attempts", async () => {
  let tries = 0
  const server = createServer((socket) => {
    tries++
    socket.resetAndDestroy()
  }).listen(0, "127.0.0.1")
  await once(server, "listening")
  const url = `redis://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { said, log } = listeningLog()
  const { close } = await openCounters(countersAt(url), log)
  try {
    await expect.poll(() => tries, { timeout: 60_000 }).toBeGreaterThan(3)
    expect(said).toEqual([
      "There is no connection to Redis. The service keeps trying; check Redis and REDIS_URL.",
    ])
  } finally {
    await close()
    server.close()
  }
})

it("a refund may take as long as --store-timeout, not the store's default timeout", async () => {
  const { store, isReachable, close } = await openCounters(
    countersAt(`redis://${redis.host}:${redis.port}`, 60_000),
    createLog("silent"),
  )
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
    const answer = await store.take([check], 60_000)
    const after = answer?.checks[0]?.state
    if (after === undefined) throw new Error("Redis has not counted")
    redis.freeze()
    const refunding = store.refund([{ policy, partition: "a", units: 3, after }])
    // Wait several times the store's default timeout, after which the refund would have been rejected.
    await sleep(300)
    redis.thaw()
    await refunding
    const seen = await peekStore(store, [{ ...check, cost: 0 }], 60_000)
    expect(seen?.checks[0]?.state.current).toBe(1)
  } finally {
    await close()
  }
})
