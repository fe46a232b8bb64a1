import { redisStore } from "@sluice/redis"
import { Redis } from "ioredis"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { keysWithoutTtl } from "../redis/counted.ts"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"
import { until } from "../servers/until.ts"
import { type EnvoyAsking, openEnvoy } from "./envoy-asking.ts"
import { openService, type Started, startService } from "./started.ts"

/** Rules whose windows do not end while a test runs. */
const RULES = `
service_id: shop
rules:
  - { name: per-user, field: user_id, algorithm: sliding-log, rate: { requests_per_unit: 7, unit: week } }
  - { name: per-ip, field: ip, algorithm: sliding-log, rate: { requests_per_unit: 20, unit: week } }
---
service_id: two
rules:
  - { name: few, match: { fields: { plan: [free] } }, algorithm: sliding-log, rate: { requests_per_unit: 7, unit: week } }
  - { name: many, field: user_id, algorithm: sliding-log, rate: { requests_per_unit: 20, unit: week } }
---
service_id: 2
rules: { name: daily, algorithm: token-bucket, limit: 10, window: 52 weeks, request_rejection_message: exhausted-daily-limit }
---
service_id: held
rules: { name: queued, field: user_id, throttle: { kind: queue, max_wait_ms: 61000 }, algorithm: sliding-log, rate: { requests_per_unit: 1, unit: minute } }
`

let server: RedisServer
let made = 0
beforeAll(async () => {
  server = await startRedis()
})
afterAll(async () => {
  expect(await keysWithoutTtl(server)).toEqual([])
  await server.stop()
})

describe("with two instances that share one Redis", () => {
  const clients: Redis[] = []
  const instances: Started[] = []
  const envoys: EnvoyAsking[] = []
  let prefix = ""
  beforeEach(async () => {
    prefix = `v${made++}:`
    for (let instance = 0; instance < 2; instance++) {
      const client = new Redis(server.port, server.host)
      clients.push(client)
      const store = redisStore({ client, prefix, timeoutMs: 20_000 })
      const started = await startService(RULES, { shared: { store, storeTimeoutMs: 20_000 } })
      instances.push(started)
      envoys.push(openEnvoy(started.grpc))
    }
    return async () => {
      for (const envoy of envoys.splice(0)) envoy.close()
      for (const instance of instances.splice(0)) {
        await instance.stop()
        expect(instance.faults).toEqual([])
      }
      for (const client of clients.splice(0)) client.disconnect()
    }
  })

  /**
   * Returns how many of `count` concurrent requests are admitted. The requests are distributed over the instances in
   * turn.
   */
  const admitted = async (count: number, ...asked: Parameters<EnvoyAsking["ask"]>): Promise<number> => {
    const answers = await Promise.all(
      Array.from({ length: count }, (_, turn) => (envoys[turn % envoys.length] as EnvoyAsking).ask(...asked)),
    )
    return answers.filter(({ overall }) => overall === "OK").length
  }

  it("several descriptors are never admitted above their smallest limit, and refusals take no units", async () => {
    const both = [{ user_id: "ada" }, { remote_address: "192.0.2.1" }]
    expect(await admitted(60, "shop", both)).toBeLessThanOrEqual(7)
    // Some requests may have been refused because of units that were refunded later. These units are available now.
    for (let asked = 0; asked < 7; asked++) await envoys[0]?.ask("shop", both)
    expect(await admitted(10, "shop", both)).toBe(0)
    expect(await admitted(60, "shop", [{ remote_address: "192.0.2.1" }])).toBe(13)
  })

  it("a held caller that hangs up is refunded the units of its other descriptors", async () => {
    const [envoy] = envoys
    expect((await envoy?.ask("held", [{ user_id: "ada" }]))?.overall).toBe("OK")
    const held = { entries: [{ key: "user_id", value: "ada" }] }
    const free = { entries: [{ key: "user_id", value: "bob" }] }
    const late = await envoy?.call(
      { domain: "held", descriptors: [free, held] },
      { deadline: Date.now() + 500 },
    )
    expect(late).toMatchObject({ error: { code: 4 } })
    await until("bob's unit is back", async () => {
      const again = await envoy?.call(
        { domain: "held", descriptors: [free] },
        { deadline: Date.now() + 2_000 },
      )
      return again !== undefined && "value" in again
    })
  })
})

describe("the service without its Redis", () => {
  it("decides locally, reports degraded decisions, and sends no quota", async () => {
    const gone = await startRedis()
    const client = new Redis(gone.port, gone.host)
    client.on("error", () => {})
    const store = redisStore({ client, timeoutMs: 300 })
    const logger = { warn() {}, error() {} }
    const started = await openService(
      `${RULES}---
service_id: strict
rules: { name: closed, field: user_id, on_store_failure: deny, rate: { requests_per_unit: 7, unit: week } }
`,
      { shared: { store, storeTimeoutMs: 300, logger } },
    )
    const envoy = openEnvoy(started.grpc)
    await gone.stop()
    expect(await envoy.ask("shop", [{ user_id: "ada" }])).toMatchObject({
      overall: "OK",
      statuses: ["OK"],
      metadata: { degraded: true },
    })
    const refused = await envoy.ask("strict", [{ user_id: "ada" }])
    expect(refused).toMatchObject({
      overall: "OVER_LIMIT",
      statuses: ["OVER_LIMIT"],
      metadata: { degraded: true, policy: "closed" },
    })
    expect(JSON.parse(refused.body)).toMatchObject({ status: 503, title: "Temporary Reduced Capacity" })
    envoy.close()
    client.disconnect()
  })
})
