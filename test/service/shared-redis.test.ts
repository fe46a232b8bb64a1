import { setTimeout as sleep } from "node:timers/promises"
import { status } from "@grpc/grpc-js"
import { manualClock } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import { Redis } from "ioredis"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"
import { until } from "../servers/until.ts"
import { type Started, startService } from "./started.ts"
import { openStranger, type Stranger } from "./stranger.ts"

const RULES = `
service_id: 1
rules: { name: fifty, field: user, algorithm: fixed-window, rate: { requests_per_unit: 50, unit: week } }
`

/** An instance with its own client. */
interface Instance {
  readonly started: Started
  readonly stranger: Stranger
  readonly client: Redis
}

describe("instances of the service on one Redis", () => {
  let server: RedisServer
  const instances: Instance[] = []
  beforeAll(async () => {
    server = await startRedis()
    for (let index = 0; index < 3; index++) instances.push(await startInstance(server))
  })
  afterAll(async () => {
    for (const { started, stranger, client } of instances) {
      stranger.close()
      await started.stop()
      client.disconnect()
      expect(started.faults).toEqual([])
    }
    await server.stop()
  })

  const ask = async ({ stranger }: Instance, user: string, more: object = {}, options: object = {}) => {
    const request = JSON.stringify({ user })
    return stranger.call("ShouldForwardRequest", { service_id: 1, request, ...more }, options)
  }
  const forwards = async (instance: Instance, user: string): Promise<boolean> => {
    const called = await ask(instance, user)
    if ("error" in called) throw called.error
    expect(called.value.degraded).toBe(false)
    return called.value.should_forward === true
  }

  it("refund the units of a caller that had gone before the answer", async () => {
    const [instance] = instances as [Instance]
    await ask(instance, "gone")
    server.freeze()
    const called = await ask(instance, "gone", {}, { deadline: Date.now() + 150 })
    // The service times out slightly later than the caller, because it counts from the arrival of the call.
    await sleep(500)
    server.thaw()
    expect("error" in called && called.error.code).toBe(status.DEADLINE_EXCEEDED)
    const remaining = async (): Promise<unknown> => {
      const looked = await ask(instance, "gone", { peek: true })
      return "value" in looked && looked.value.remaining
    }
    // The unit was taken when Redis continued, and is given back after that. The first looks may see either state.
    await until("the units are back", async () => (await remaining()) === 49)
  })

  it.each([
    ["has hung up", {}, { signal: () => AbortSignal.timeout(150) }],
    ["has reached its timeout", { "connect-timeout-ms": "150" }, {}],
  ])("refund the units of a caller over HTTP that %s before the answer", async (what, headers, more) => {
    const [instance] = instances as [Instance]
    const user = `gone over HTTP: ${what}`
    await ask(instance, user)
    server.freeze()
    const signal = "signal" in more ? more.signal() : null
    const status = await fetch(`${instance.started.http}/sluice.v1.RateLimiter/ShouldForwardRequest`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ serviceId: 1, request: JSON.stringify({ user }) }),
      signal,
    }).then(
      (response) => response.status,
      (error: Error) => error.name,
    )
    // The service notices a closed connection slightly later.
    await sleep(500)
    server.thaw()
    expect(status).toBe(signal === null ? 504 : "TimeoutError")
    const remaining = async (): Promise<unknown> => {
      const looked = await ask(instance, user, { peek: true })
      return "value" in looked && looked.value.remaining
    }
    // Both requests have taken a unit before this peek. Without the refund, 48 would remain.
    await until("the units are back", async () => (await remaining()) === 49)
  })

  it("never swap the answers of concurrent requests, over any protocol", async () => {
    const round = async ({ started, stranger }: Instance, from: number): Promise<void> => {
      // Each request has its own user and a different cost, so what remains identifies its answer.
      const costs = Array.from({ length: 40 }, (_, index) => index + 1)
      const request = (cost: number, way: string) => ({
        service_id: 1,
        request: JSON.stringify({ user: `swap ${from} ${way} ${cost}` }),
        cost,
      })
      const overGrpc = async (cost: number): Promise<number> => {
        const called = await stranger.call("ShouldForwardRequest", request(cost, "grpc"))
        return "value" in called ? Number(called.value.remaining) : Number.NaN
      }
      const overHttp = async (cost: number): Promise<number> => {
        const response = await fetch(`${started.http}/sluice.v1.RateLimiter/ShouldForwardRequest`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(request(cost, "http")),
        })
        return Number(((await response.json()) as { remaining: string }).remaining)
      }
      const inBatch = async (): Promise<number[]> => {
        const called = await stranger.call("ShouldForwardRequests", {
          requests: costs.map((cost) => request(cost, "batch")),
        })
        const { responses } = ("value" in called ? called.value : { responses: [] }) as {
          responses: { remaining: number }[]
        }
        return responses.map(({ remaining }) => remaining)
      }
      const expected = costs.map((cost) => 50 - cost)
      expect(
        await Promise.all([Promise.all(costs.map(overGrpc)), Promise.all(costs.map(overHttp)), inBatch()]),
      ).toEqual([expected, expected, expected])
    }
    for (let from = 0; from < 5; from++)
      await Promise.all(instances.map((each, index) => round(each, from * 3 + index)))
  })

  it("send no command to Redis about a client that was refused", async () => {
    const [instance] = instances as [Instance]
    while (await forwards(instance, "denied"));
    const calls = async (): Promise<number> => {
      const text = await instance.client.info("commandstats")
      const counts = [...text.matchAll(/cmdstat_(?:evalsha|eval|fcall):calls=(\d+)/g)]
      return counts.reduce((sum, [, count]) => sum + Number(count), 0)
    }
    const before = await calls()
    for (let asked = 0; asked < 50; asked++) expect(await forwards(instance, "denied")).toBe(false)
    expect(await calls()).toBe(before)
  })
})

async function startInstance(server: RedisServer): Promise<Instance> {
  const client = new Redis(server.port, server.host, { retryStrategy: () => 50 })
  client.on("error", () => undefined)
  await client.ping()
  // A manual clock, because a minute or a day must not end during a test.
  const store = redisStore({ client, clock: manualClock(Date.now()), timeoutMs: 20_000 })
  const logger = { warn() {}, error() {} }
  const started = await startService(RULES, { shared: { store, storeTimeoutMs: 20_000, logger } })
  const stranger = openStranger(started.grpc, "sluice/v1/rate_limiter.proto", "sluice.v1.RateLimiter")
  return { started, stranger, client }
}
