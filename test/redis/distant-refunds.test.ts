import {
  createLimiter,
  type Limiter,
  type RequestFacts,
  StoreUnavailableError,
  type Warning,
} from "@sluice/core"
import type { LimiterSettings } from "@sluice/core/adapters"
import { rateLimit } from "@sluice/express"
import { redisStore } from "@sluice/redis"
import express from "express"
import { Redis } from "ioredis"
import request from "supertest"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { startProxy, type TcpProxy } from "../servers/tcp-proxy.ts"
import { until } from "../servers/until.ts"

/** The round-trip time. Each direction takes half of this time. */
const ROUND_TRIP_MS = 70
const ALICE: RequestFacts = { remoteAddress: "192.0.2.1" }
const QUIET = { warn() {}, error() {} }

const { server } = await redisForTests()
let proxy: TcpProxy
let client: Redis
const closers: (() => unknown)[] = []

beforeEach(async () => {
  await server.command("FLUSHALL")
  proxy = await startProxy(server)
  proxy.delayMs = ROUND_TRIP_MS / 2
  client = new Redis(proxy.port, proxy.host, { lazyConnect: true, retryStrategy: () => 10 })
  client.on("error", () => {})
  await client.connect()
})
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
  client.disconnect()
  proxy.close()
})

function distantLimiter(options: Omit<LimiterSettings<RequestFacts>, "limit" | "window"> = {}): Limiter {
  const limiter = createLimiter({
    limit: 10,
    window: "1 day",
    service: "distant",
    store: redisStore({ client }),
    storeTimeoutMs: 2_000,
    logger: QUIET,
    ...options,
  })
  closers.push(() => limiter.close())
  return limiter
}

async function remaining(limiter: Limiter): Promise<number> {
  const { remaining, degraded } = await limiter.peek(ALICE, { cost: 0 })
  expect(degraded).toBe(false)
  return remaining
}

async function failureOf(work: Promise<void>): Promise<StoreUnavailableError> {
  const error: unknown = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof StoreUnavailableError))
    throw new Error(`expected a failure of the store, not ${error}`)
  return error
}

describe("with a Redis 70 ms away and a storeTimeoutMs of 2000", () => {
  it("refund, settle and reset wait for Redis as long as a decision does", async () => {
    const limiter = distantLimiter()
    await limiter.refund(await limiter.decide(ALICE, { cost: 4 }))
    expect(await remaining(limiter)).toBe(10)
    await limiter.settle(await limiter.decide(ALICE, { cost: 4 }), 1)
    expect(await remaining(limiter)).toBe(9)
    await limiter.reset(ALICE)
    expect(await remaining(limiter)).toBe(10)
  })
})

describe("a refund that fails", () => {
  it("can be repeated if the client had no connection", async () => {
    proxy.delayMs = 0
    const limiter = distantLimiter({ storeTimeoutMs: 400 })
    const decision = await limiter.decide(ALICE, { cost: 4 })
    proxy.refuse()
    proxy.cut()
    await until("the client has lost its connection", () => client.status !== "ready")
    const failed = await failureOf(limiter.refund(decision))
    expect(failed).toMatchObject({ outcome: "not-applied", code: "SLUICE_STORE_UNAVAILABLE" })
    expect(failed.message).toContain("call refund again")
    expect(await failureOf(limiter.settle(decision, 1))).toMatchObject({ outcome: "not-applied" })
    await proxy.accept()
    await until("the client is back", () => client.status === "ready")
    await limiter.refund(decision)
    await until("it is counted", async () => !(await limiter.peek(ALICE)).degraded)
    expect(await remaining(limiter)).toBe(10)
  })

  it("cannot be repeated if it was sent, because Redis may have returned the units", async () => {
    proxy.delayMs = 0
    const limiter = distantLimiter({ storeTimeoutMs: 250 })
    const decision = await limiter.decide(ALICE, { cost: 4 })
    proxy.pause("replies")
    const failed = await failureOf(limiter.refund(decision))
    expect(failed).toMatchObject({ outcome: "unknown", kind: "timeout" })
    expect(failed.message).toContain("Another refund has no effect")
    proxy.resume()
    await limiter.refund(decision)
    await limiter.settle(decision, 0)
    await until("Redis answers", async () => !(await limiter.peek(ALICE)).degraded)
    expect(await remaining(limiter)).toBe(10)
  })
})

describe("a refund that no code awaits", () => {
  it("waits longer than a decision, so that a short slowdown of Redis loses no units", async () => {
    proxy.delayMs = 0
    const limiter = distantLimiter({ storeTimeoutMs: 250, refundWhen: () => true })
    const app = express()
    const limits = rateLimit({ limiter: limiter as never })
    app.use(limits)
    app.get("/", (_request, response) => {
      // The response is sent. Its refund is now sent to a Redis that is slower than the timeout of decisions.
      proxy.delayMs = 150
      response.end()
    })
    await request(app).get("/")
    await until("the refund is counted", async () => {
      const kept = await server.command("DBSIZE")
      return Number(kept) === 1
    })
    proxy.delayMs = 0
    await until("the unit is back", async () => {
      const { checks, degraded } = await limiter.peek({ remoteAddress: "127.0.0.1" }, { cost: 0 })
      return !degraded && checks[0]?.remaining === 10
    })
  })

  it("is reported in a warning and an event if it is lost", async () => {
    proxy.delayMs = 0
    const warnings: Warning[] = []
    const lost: StoreUnavailableError[] = []
    const limiter = distantLimiter({ storeTimeoutMs: 250, refundWhen: () => true })
    limiter.on("warning", (warning) => warnings.push(warning))
    limiter.on("refund-lost", ({ error }) => lost.push(error))
    const app = express()
    app.use(rateLimit({ limiter: limiter as never }))
    app.get("/", (_request, response) => {
      proxy.pause()
      response.end()
    })
    await request(app).get("/")
    await until("the refund was sent", () => proxy.connections > 0)
    // A broken connection ends the wait, because it is unknown whether Redis received the refund.
    setTimeout(() => proxy.cut(), 100)
    await until("the loss is reported", () => lost.length > 0)
    expect(warnings.map(({ code }) => code)).toContain("SLUICE_REFUND_LOST")
    expect(warnings.filter(({ code }) => code === "SLUICE_REFUND_LOST")).toHaveLength(1)
  })
})
