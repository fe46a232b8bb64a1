import { SluiceStore, type SluiceStoreOptions } from "@sluice/express-rate-limit-store"
import { redisStore } from "@sluice/redis"
import express from "express"
import { type Options, rateLimit } from "express-rate-limit"
import { Redis } from "ioredis"
import { RedisStore } from "rate-limit-redis"
import { createClient } from "redis"
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"
import { limitedApp, type Served, serve } from "./limited-app.ts"

/** A window that is longer than any test. */
const windowMs = 86_400_000
/** Long enough for a busy machine, so that Redis makes every decision. */
const patient: SluiceStoreOptions = { storeTimeoutMs: 20_000 }

const { server } = await redisForTests()
let client: Redis
beforeAll(async () => {
  client = new Redis(server.port, server.host).on("error", () => {})
})
beforeEach(() => server.command("FLUSHALL"))
afterAll(async () => {
  client?.disconnect()
})

describe("a SluiceStore in Redis", () => {
  it("counts two processes together, through either client, in keys with the prefix", async () => {
    const other = createClient({ socket: { host: server.host, port: server.port } })
    await other.connect()
    onTestFinished(() => other.destroy())
    const options = { limit: 3, windowMs }
    const first = await limitedApp(options, { ...patient, client, prefix: "login:" })
    const second = await limitedApp(options, { ...patient, client: other, prefix: "login:" })
    expect([await first.statuses(2), await second.statuses(2)]).toEqual([
      [200, 200],
      [200, 429],
    ])
    expect(await server.command("KEYS", "*")).toEqual([expect.stringMatching(/^login:sl2:.*127\.0\.0\.1$/)])
    expect(first.store).toMatchObject({ prefix: "login:", localKeys: false })
    expect([first.logged, second.logged]).toEqual([[], []])
  })

  it("calls Redis for each hit if the limit is a function, but not above the largest limit", async () => {
    const limit: Options["limit"] = async () => 1
    const counts = await limitedApp({ limit, windowMs }, { ...patient, client, prefix: "every:" })
    const caches = await limitedApp(
      { limit, windowMs },
      { ...patient, client, prefix: "largest:", largestLimit: 2 },
    )
    const calls: number[] = []
    for (const { statuses } of [counts, caches]) {
      expect(await statuses(4)).toEqual([200, 429, 429, 429])
      const before = await callsOf(server)
      expect(await statuses(5)).toEqual(Array(5).fill(429))
      calls.push((await callsOf(server)) - before)
    }
    expect(calls).toEqual([5, 0])
  })

  it("undoes an admitted hit in Redis, but takes nothing back for a refusal", async () => {
    const options = { limit: 2, windowMs, skipFailedRequests: true }
    const { ask, store } = await limitedApp(options, { ...patient, client })
    const paths = ["/status/404", "/status/404", "/", "/", "/", "/"]
    expect((await ask(...paths)).map(({ status }) => status)).toEqual([404, 404, 200, 200, 429, 429])
    expect(await store.get("127.0.0.1")).toMatchObject({ totalHits: 2 })
    await store.decrement("127.0.0.1")
    expect(await store.get("127.0.0.1")).toMatchObject({ totalHits: 1 })
    await store.resetKey("127.0.0.1")
    expect(await store.get("127.0.0.1")).toBeUndefined()
  })

  it("does not close a client or a store that the app has passed", async () => {
    const ofClient = new SluiceStore({ client })
    const given = redisStore({ client, prefix: "given:" })
    const ofStore = new SluiceStore({ store: given })
    for (const store of [ofClient, ofStore]) {
      rateLimit({ store })
      await store.shutdown()
      await expect(store.increment("ann")).rejects.toThrow("closed")
    }
    expect(await client.ping()).toBe("PONG")
    expect(await given.take([])).toMatchObject({ granted: true })
    await given.close()
  })
})

/** How Redis becomes unavailable, and how it is restored. */
const OUTAGES = {
  frozen: { begin: () => server.freeze(), end: () => server.thaw() },
  closed: { begin: () => server.kill(), end: () => server.start() },
} as const

describe.each(Object.entries(OUTAGES))("while Redis is %s", (_how, { begin, end }) => {
  it("SluiceStore enforces the limit in the process, and writes none of these hits to Redis later", async () => {
    const { ask, statuses, store, limit, logged } = await limitedApp(
      { limit: 3, windowMs, skipFailedRequests: true },
      { client: open(server) },
    )
    await begin()
    onTestFinished(end)
    expect(await statuses(5)).toEqual([200, 200, 200, 429, 429])
    // A failed request is undone where it was counted.
    await store.limiter.decide("bob")
    expect(await store.get("bob")).toMatchObject({ totalHits: 1 })
    const [failed] = await ask("/status/404")
    expect(failed?.status).toBe(429)
    // express-rate-limit's types do not require callers to await `resetKey`, so it must not cause an unhandled
    // rejection.
    const unhandled = vi.fn()
    process.on("unhandledRejection", unhandled)
    limit.resetKey("127.0.0.1")
    await expect(limit.resetKey("127.0.0.1")).rejects.toMatchObject({ code: "SLUICE_STORE_UNAVAILABLE" })
    await new Promise(setImmediate)
    process.off("unhandledRejection", unhandled)
    expect(unhandled).not.toHaveBeenCalled()
    expect(
      logged.filter((line) => line.includes("SLUICE_DEGRADED") || line.includes("sluice_degraded")),
    ).toHaveLength(1)
    await end()
    await vi.waitUntil(async () => (await store.limiter.decide("probe")).degraded === false, {
      timeout: 20_000,
    })
    expect(await server.command("KEYS", "*127.0.0.1")).toEqual([])
    expect((await statuses(1))[0]).toBe(200)
  })

  it("rate-limit-redis responds with errors, or not at all", async () => {
    const peer = await peerApp(open(server))
    expect(await peer.statuses(1)).toEqual([200])
    await begin()
    onTestFinished(end)
    // The client of rate-limit-redis rejects a command after 20 attempts to connect, and waits forever for a frozen
    // server.
    await expect(fetch(peer.url, { signal: AbortSignal.timeout(300) })).rejects.toThrow("timeout")
  })
})

describe("while Redis is absent from the start", () => {
  it("SluiceStore starts and enforces the limit in the process", async () => {
    const gone = await startRedis()
    await gone.stop()
    const { statuses } = await limitedApp({ limit: 3, windowMs }, { client: open(gone) })
    expect(await statuses(5)).toEqual([200, 200, 200, 429, 429])
  })
})

/** Opens a client with the default options. Its errors appear in the responses. */
function open({ host, port }: RedisServer): Redis {
  const opened = new Redis(port, host).on("error", () => {})
  onTestFinished(() => opened.disconnect())
  return opened
}

/** Serves an app with rate-limit-redis, set up as its README says. */
async function peerApp(redis: Redis): Promise<Served> {
  const store = new RedisStore({
    sendCommand: (command: string, ...args: string[]) => redis.call(command, ...args) as Promise<never>,
  })
  const logger = { warn() {}, error() {} }
  const limit = rateLimit({ limit: 3, windowMs, store, logger })
  return serve(express().use(limit, (_req, res) => void res.json({})))
}

/** Returns the number of script calls that the server has received. */
async function callsOf(server: RedisServer): Promise<number> {
  const stats = String(await server.command("INFO", "commandstats"))
  return [...stats.matchAll(/cmdstat_evalsha?:calls=(\d+)/g)].reduce(
    (sum, [, calls]) => sum + Number(calls),
    0,
  )
}
