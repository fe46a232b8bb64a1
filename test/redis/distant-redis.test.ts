import { createLimiter, type RequestFacts, type Warning } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import { Redis } from "ioredis"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { startProxy, type TcpProxy } from "../servers/tcp-proxy.ts"
import { until } from "../servers/until.ts"

const ROUND_TRIP_MS = 80
const ALICE: RequestFacts = { remoteAddress: "192.0.2.1" }
const QUIET = { warn() {}, error() {} }

const { server } = await redisForTests()
let proxy: TcpProxy
let client: Redis
const closers: (() => unknown)[] = []

beforeEach(async () => {
  proxy = await startProxy(server)
  client = new Redis(proxy.port, proxy.host, { lazyConnect: true })
  client.on("error", () => {})
  await client.connect()
})
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
  client.disconnect()
  proxy.close()
})

function watchedLimiter(prefix: string, storeTimeoutMs?: number) {
  const store = redisStore({ client, prefix })
  const time = { aheadMs: 0 }
  const limiter = createLimiter({
    clock: { now: () => Date.now() + time.aheadMs },
    limit: 1_000_000,
    window: "1 day",
    service: "distant",
    store,
    storeTimeoutMs,
    logger: QUIET,
  })
  const warnings: Warning[] = []
  limiter.on("warning", (warning) => warnings.push(warning))
  closers.push(async () => {
    await limiter.close()
    await store.close()
  })
  const timeouts = () => warnings.filter(({ code }) => code === "SLUICE_STORE_TIMEOUTS")
  const isDegraded = async () => (await limiter.decide(ALICE)).degraded
  /** Moves the clock past the minute in which timeouts are counted. */
  const endMinute = async () => {
    time.aheadMs += 60_000
    for (let i = 0; i < 3; i++) await limiter.decide(ALICE)
  }
  return { limiter, store, timeouts, isDegraded, endMinute }
}

describe("a Redis 80 ms away and the default timeout of 50 ms", () => {
  for (const [how, atOnce] of [
    ["one after the other", 1],
    ["all at the same time", 300],
  ] as const) {
    it(`cause one warning that suggests a sufficient timeout, if 300 decisions are made ${how}`, async () => {
      proxy.delayMs = ROUND_TRIP_MS / 2
      const { limiter, timeouts } = watchedLimiter(`${how}:`)
      let degraded = 0
      for (let asked = 0; asked < 300; asked += atOnce) {
        const decisions = await Promise.all(Array.from({ length: atOnce }, () => limiter.decide(ALICE)))
        degraded += decisions.filter((decision) => decision.degraded).length
      }
      expect(degraded).toBe(300)
      await until("the warning is there", () => timeouts().length > 0)
      expect(timeouts()).toHaveLength(1)
      const message = timeouts()[0]?.message ?? ""
      const [, late, timeoutMs, medianMs, suggestedMs] =
        /^(\d+) of \d+ decisions .* \((\d+) ms\).* take (\d+) ms .*Set storeTimeoutMs to (\d+)/.exec(
          message,
        ) ?? []
      expect([Number(late) >= 20, Number(timeoutMs)], message).toEqual([true, 50])
      // On a busy machine, the median may be higher.
      expect(Number(medianMs)).toBeGreaterThanOrEqual(ROUND_TRIP_MS)
      expect(Number(suggestedMs)).toBeGreaterThanOrEqual(2 * Number(medianMs) - 2)
      const patient = watchedLimiter(`${how}, patient:`, Number(suggestedMs))
      await until("Redis answers in time", async () => !(await patient.limiter.decide(ALICE)).degraded)
    })
  }
})

it("a Redis that stops responding is reported as an outage, without advice to raise the timeout", async () => {
  const { limiter, timeouts } = watchedLimiter("outage:")
  await until("it answers", async () => !(await limiter.decide(ALICE)).degraded)
  proxy.pause()
  for (let i = 0; i < 100; i++) await limiter.decide(ALICE)
  // Wait longer than the warning waits for late replies.
  await new Promise((resolve) => setTimeout(resolve, 1_500))
  expect(timeouts()).toEqual([])
})

it.each<[string, number, () => unknown, () => unknown]>([
  [
    "refuses connections",
    100,
    () => {
      proxy.refuse()
      proxy.cut()
    },
    () => proxy.accept(),
  ],
  // Freeze Redis for over a second, because late replies after a shorter outage count as slow.
  ["is frozen", 300, () => server.freeze(), () => server.thaw()],
  ["is killed and started again", 100, () => server.kill(), () => server.start()],
])(
  "a Redis that %s for a while is not reported as slow, during or after the outage",
  async (how, storeTimeoutMs, end, begin) => {
    const { isDegraded, timeouts, endMinute } = watchedLimiter(`${how}:`, storeTimeoutMs)
    await until("it answers", async () => !(await isDegraded()))
    for (let nth = 0; nth < 2; nth++) {
      await end()
      for (let i = 0; i < 100; i++) expect(await isDegraded()).toBe(true)
      await begin()
      await until("it responds again", async () => !(await isDegraded()))
      for (let i = 0; i < 10; i++) await isDegraded()
      await endMinute()
    }
    expect(timeouts()).toEqual([])
  },
)

it("a Redis whose replies only sometimes exceed the timeout is reported as slow once", async () => {
  const { isDegraded, timeouts, endMinute } = watchedLimiter("uneven:", 45)
  const delays = [10, 30]
  for (let minute = 0; minute < 2; minute++) {
    for (let i = 0, late = 0; late < 25; i++) {
      proxy.delayMs = delays[i % delays.length] as number
      if (await isDegraded()) late++
    }
    proxy.delayMs = 10
    await until("it answers in time", async () => !(await isDegraded()))
    await endMinute()
  }
  expect(timeouts()).toHaveLength(1)
})
