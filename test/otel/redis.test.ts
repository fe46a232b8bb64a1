import { createLimiter } from "@sluice/core"
import { instrument } from "@sluice/otel"
import { redisStore } from "@sluice/redis"
import { Redis } from "ioredis"
import { expect, it, onTestFinished } from "vitest"
import { startRedis } from "../servers/redis-server.ts"
import { until } from "../servers/until.ts"
import { startMetering } from "./metering.ts"

/**
 * Short, so that a decision soon times out. On a busy machine, some decisions may be degraded although Redis is
 * healthy.
 */
const storeTimeoutMs = 200

async function setUp() {
  const server = await startRedis()
  onTestFinished(() => server.stop())
  const client = new Redis(server.port, server.host, { retryStrategy: () => 50 })
  client.on("error", () => undefined)
  onTestFinished(() => client.disconnect())
  const limiter = createLimiter({
    name: "all",
    limit: 1_000_000,
    window: "1 day",
    service: "shop",
    logger: { warn() {}, error() {} },
    store: redisStore({ client }),
    storeTimeoutMs,
  })
  onTestFinished(() => limiter.close())
  const metering = startMetering()
  instrument(limiter, { meterProvider: metering.meterProvider })
  const counts = { degraded: 0, normal: 0 }
  /** Returns whether Redis made the decision. */
  const decide = async () => {
    const { degraded } = await limiter.decide({ remoteAddress: "192.0.2.1" })
    counts[degraded ? "degraded" : "normal"]++
    return !degraded
  }
  const openBreakers = async () => (await metering.values("sluice.store.breaker.open"))[""]
  const errors = () => metering.values("sluice.store.errors", "error.type")
  await until("Redis decides", decide)
  return { server, metering, counts, decide, openBreakers, errors }
}

it("an outage of Redis and its end are visible in decisions, errors and the circuit breaker", async () => {
  const { server, metering, counts, decide, openBreakers, errors } = await setUp()
  expect(await openBreakers()).toBe(0)
  await server.kill()
  await until("the breaker is open", async () => {
    await decide()
    return (await openBreakers()) === 1
  })
  const atFirst = await errors()
  expect(Object.values(atFirst).reduce((sum, each) => sum + each, 0)).toBe(counts.degraded)
  // From now on, no decision waits, because the store is no longer called.
  for (let times = 0; times < 10; times++) expect(await decide()).toBe(false)
  expect(await errors()).toEqual({ ...atFirst, unavailable: (atFirst.unavailable ?? 0) + 10 })

  await server.start()
  await until("the breaker is closed", async () => (await openBreakers()) === 0)
  await until("Redis decides again", decide)
  const decisions = metering.values("sluice.policy.decisions", "sluice.decision.mode")
  expect(await decisions).toEqual(counts)
})

it("a Redis that never replies is counted as a timeout, not as unavailable", async () => {
  const { server, decide, errors } = await setUp()
  const { timeout: before = 0 } = await errors()
  server.freeze()
  try {
    expect(await decide()).toBe(false)
  } finally {
    server.thaw()
  }
  expect(await errors()).toMatchObject({ timeout: before + 1 })
})

it("an invalid reply is counted separately from an outage", async () => {
  const { server, decide, errors } = await setUp()
  const [key] = (await server.command("KEYS", "sl2:*")) as string[]
  await server.command("SET", key ?? "", "rubbish")
  await until("Redis has answered", async () => {
    await decide()
    return (await errors())["invalid-answer"] !== undefined
  })
  await server.command("DEL", key ?? "")
  await until("Redis decides again", decide)
})
