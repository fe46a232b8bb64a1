import { rateLimit as sluice } from "@sluice/express"
import { redisStore } from "@sluice/redis"
import { rateLimit as peer } from "express-rate-limit"
import { Redis } from "ioredis"
import { expect, it } from "vitest"
import { startRedis } from "../../servers/redis-server.ts"
import { appOf } from "./express-rate-limit/app.ts"
import { afterwards, answers, commonClock, statuses } from "./pairs.ts"

const DAY_MS = 86_400_000
const daily = { limit: 5, window: "1 day" } as const
const three = ["/", "/", "/"]
const six = [...three, ...three]

it("an immediate switch to Sluice grants a client its daily quota twice on that day", async () => {
  const clock = commonClock()
  expect(await statuses(appOf(peer({ windowMs: DAY_MS, limit: 5 })), three, clock)).toEqual([200, 200, 200])
  const after = await statuses(appOf(sluice({ ...daily, clock })), six, clock)
  expect(after).toEqual([200, 200, 200, 200, 200, 429])
})

it("a switch to Sluice grants no extra quota if both libraries have run together for one window", async () => {
  const clock = commonClock()
  const old = peer({ windowMs: DAY_MS, limit: 5, requestPropertyName: "oldRateLimit", legacyHeaders: false })
  await statuses(appOf(old), three, clock)
  const limits = sluice({ ...daily, headers: false, clock })
  const both = await answers(appOf(old, limits), clock, three)
  expect(both.map(({ status }) => status)).toEqual([200, 200, 429])
  expect(Object.keys(both[0]?.headers ?? {}).filter((name) => name.includes("ratelimit"))).toEqual([])
  clock.advance(2 * DAY_MS)
  expect(await statuses(appOf(old, limits), three, clock)).toEqual([200, 200, 200])
  expect(await statuses(appOf(limits), three, clock)).toEqual([200, 200, 429])
})

it("shadow mode admits all requests, and its counts in Redis remain for the next process", async () => {
  const server = await startRedis()
  afterwards(() => server.stop())
  const deployed = (more: { shadow?: true }) => {
    const client = new Redis(server.port, server.host)
    const store = redisStore({ client })
    const limits = sluice({ service: "shop", ...daily, storeTimeoutMs: 20_000, store, ...more })
    afterwards(async () => client.disconnect())
    return limits
  }
  const shadow = deployed({ shadow: true })
  const shadowed: unknown[] = []
  shadow.limiter.on("decision", (decision) => void shadowed.push(...decision.shadowed))
  expect(await statuses(appOf(shadow), six)).toEqual([200, 200, 200, 200, 200, 200])
  expect(shadowed).toEqual(["ip-1d"])
  await shadow.limiter.close()
  expect(await statuses(appOf(deployed({})), ["/"])).toEqual([429])
})
