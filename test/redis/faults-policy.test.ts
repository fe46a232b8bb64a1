import { createLimiter, type Limiter } from "@sluice/core"
import { rateLimit } from "@sluice/express"
import { redisStore } from "@sluice/redis"
import express, { type Request } from "express"
import { Redis } from "ioredis"
import request from "supertest"
import { beforeEach, describe, expect, it } from "vitest"
import { FIXED } from "../../packages/contracts/src/store/asking.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { until } from "../servers/until.ts"
import { unitsIn } from "./counted.ts"
import { afterwards, checkEachTest } from "./load.ts"

checkEachTest()

const { server } = await redisForTests()
beforeEach(async () => {
  await server.start()
  await server.command("FLUSHALL")
})

/** Creates a store that has already counted a request. */
async function openStore() {
  const client = new Redis(server.port, server.host, { retryStrategy: () => 20 })
  client.on("error", () => {})
  afterwards(() => client.disconnect())
  const store = redisStore({ client })
  afterwards(() => store.close())
  await store.take([{ policy: POLICY, partition: "", cost: 1, shadow: false }], 10_000)
  return store
}

const POLICY = { ...FIXED, limit: 1, windowMs: 1_000 }
const QUIET = { warn() {}, error() {} }

function appOf(limiter: Limiter<Request>) {
  const app = express()
  app.use(rateLimit({ limiter }))
  app.get("/", (_req, res) => res.send("fine"))
  afterwards(() => limiter.close())
  return app
}

/** Returns the statuses of `count` sequential requests. */
async function statuses(app: Parameters<typeof request>[0], count: number): Promise<number[]> {
  const all: number[] = []
  for (let i = 0; i < count; i++) all.push((await request(app).get("/")).status)
  return all
}

describe("over HTTP, while Redis is unreachable", () => {
  it.each([
    ["local", 1, [200, 200, 200, 200, 429]],
    ["local", 2, [200, 200, 429, 429, 429]],
    ["allow", 1, [200, 200, 200, 200, 200]],
    ["deny", 1, [503, 503, 503, 503, 503]],
  ] as const)(
    "a rule with onStoreFailure %s and instances %i responds with %j",
    async (onStoreFailure, instances, expected) => {
      const store = await openStore()
      const options = {
        limit: 4,
        window: "1 day",
        onStoreFailure,
        instances,
        logger: QUIET,
        store,
        trustedProxies: 1,
      }
      const limiter = createLimiter<Request>(options)
      let granted = 0
      limiter.on("decision", ({ allowed, degraded }) => {
        if (allowed && !degraded) granted++
      })
      const app = appOf(limiter)
      // On a busy machine, a request may miss the deadline. Repeat the request as another client until Redis counts.
      await until("Redis counts", async () => {
        const { status } = await request(app).get("/").set("x-forwarded-for", "192.0.2.9")
        return granted > 0 && status === 200
      })
      await server.kill()
      expect(await statuses(app, 5)).toEqual(expected)
      await server.start()
      expect(await unitsIn(server, "")).toBe(0)
      granted = 0
      await until("Redis counts again", async () => {
        await request(app).get("/")
        return granted > 0 && (await unitsIn(server, "")) === granted
      })
      // Redis counts from zero, because the decisions of the outage were not sent to it.
      await limiter.close()
      const patient = appOf(createLimiter({ ...options, storeTimeoutMs: 20_000 }))
      const left = 4 - granted
      expect(await statuses(patient, left + 1)).toEqual([...Array(left).fill(200), 429])
    },
  )
})

describe("a strict window before, during and after an outage", () => {
  const LIMIT = 5

  it.each([
    ["admits at most twice the limit by default", {}, 2 * LIMIT],
    ["admits at most twice the limit with onStoreFailure local", { onStoreFailure: "local" }, 2 * LIMIT],
    ["admits at most the limit with onStoreFailure deny", { onStoreFailure: "deny" }, LIMIT],
  ] as const)("%s", async (_title, options, most) => {
    const store = await openStore()
    const limiter = createLimiter({
      ...{ algorithm: "sliding-window-strict", limit: LIMIT, window: "1 day", ...options },
      ...{ store, storeTimeoutMs: 20_000, logger: QUIET },
    })
    afterwards(() => limiter.close())
    const decide = () => limiter.decide({ remoteAddress: "192.0.2.1" })
    const admittedOf = async (requests: number, degraded: boolean) => {
      let admitted = 0
      for (let i = 0; i < requests; i++) {
        const decision = await decide()
        expect(decision.degraded).toBe(degraded)
        if (decision.allowed) admitted++
      }
      return admitted
    }
    let admitted = await admittedOf(LIMIT, false)
    expect(admitted).toBe(LIMIT)
    // Simulate an outage in which Redis keeps the counters but refuses to write.
    afterwards(() => server.command("CONFIG", "SET", "maxmemory", 0))
    await server.command("CONFIG", "SET", "maxmemory", 1)
    admitted += await admittedOf(3 * LIMIT, true)
    expect(admitted).toBe(most)
    await server.command("CONFIG", "SET", "maxmemory", 0)
    await until("Redis decides again", async () => {
      const { degraded, allowed } = await decide()
      if (allowed) admitted++
      return !degraded
    })
    admitted += await admittedOf(3 * LIMIT, false)
    expect(admitted).toBe(most)
  })
})
