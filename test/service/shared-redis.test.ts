import { setTimeout as sleep } from "node:timers/promises"
import { status } from "@grpc/grpc-js"
import { manualClock } from "@sluice/core/testing"
import { redisStore } from "@sluice/redis"
import { Redis } from "ioredis"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"
import { until } from "../servers/until.ts"
import { post } from "./post.ts"
import { FORWARD } from "./questions.ts"
import { type Started, startService } from "./started.ts"
import { openStranger, type Stranger } from "./stranger.ts"

const RULES = `
service_id: 1
rules: { name: fifty, field: user, algorithm: fixed-window, rate: { requests_per_unit: 50, unit: week } }
`

/** An instance of the service, and a client that calls it. */
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

  const asked = (user: string) => ({ service_id: 1, request: JSON.stringify({ user }) })
  const ask = async ({ stranger }: Instance, user: string, more: object = {}, options: object = {}) =>
    stranger.call("ShouldForwardRequest", { ...asked(user), ...more }, options)
  const forwards = async (instance: Instance, user: string): Promise<boolean> => {
    const called = await ask(instance, user)
    if ("error" in called) throw called.error
    expect(called.value.degraded).toBe(false)
    return called.value.should_forward === true
  }

  it.each<[string, unknown, (instance: Instance, user: string) => Promise<unknown>]>([
    [
      "over gRPC that has reached its deadline",
      status.DEADLINE_EXCEEDED,
      async (instance, user) => {
        const called = await ask(instance, user, {}, { deadline: Date.now() + 150 })
        return "error" in called && called.error.code
      },
    ],
    [
      "over HTTP that has hung up",
      "TimeoutError",
      ({ started }, user) =>
        fetch(started.http + FORWARD, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(asked(user)),
          signal: AbortSignal.timeout(150),
        }).catch((error: Error) => error.name),
    ],
    [
      "over HTTP that has reached its timeout",
      504,
      async ({ started }, user) =>
        (await post(started, FORWARD, asked(user), { "connect-timeout-ms": "150" })).status,
    ],
  ])("refund the units of a caller %s before the response", async (how, end, call) => {
    const [instance] = instances as [Instance]
    const user = `gone ${how}`
    await ask(instance, user)
    server.freeze()
    const ended = await call(instance, user)
    // The service notices this deadline later than the caller, because it counts from the arrival of the call.
    await sleep(500)
    server.thaw()
    expect(ended).toBe(end)
    const remaining = async (): Promise<unknown> => {
      const looked = await ask(instance, user, { peek: true })
      return "value" in looked && looked.value.remaining
    }
    // The unit is taken when Redis continues, and refunded after that. The first checks may see either state.
    await until("the units are back", async () => (await remaining()) === 49)
  })

  it("never swap the responses of concurrent requests, over any protocol", async () => {
    const round = async ({ started, stranger }: Instance, from: number): Promise<void> => {
      // Each request has a separate user and a different cost, so the remaining units identify its response.
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
        const { body } = await post(started, FORWARD, request(cost, "http"))
        return Number(body.remaining)
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

  it("send no command to Redis for a client that was refused", async () => {
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
  // Use a manual clock, because a minute or a day must not end during a test.
  const store = redisStore({ client, clock: manualClock(Date.now()), timeoutMs: 20_000 })
  const logger = { warn() {}, error() {} }
  const started = await startService(RULES, { shared: { store, storeTimeoutMs: 20_000, logger } })
  const stranger = openStranger(started.grpc, "sluice/v1/rate_limiter.proto", "sluice.v1.RateLimiter")
  return { started, stranger, client }
}
