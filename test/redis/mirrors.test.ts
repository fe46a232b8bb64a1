import { setTimeout as sleep } from "node:timers/promises"
import { createLimiter, type Limiter, type Store } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import { mirroredStore } from "@sluice/scale"
import { Redis } from "ioredis"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"
import { startProxy, type TcpProxy } from "../servers/tcp-proxy.ts"
import { until } from "../servers/until.ts"

/** The round-trip time between data centers. Each direction takes half of this time. */
const ROUND_TRIP_MS = 80
const CENTERS = ["us", "eu", "ap"] as const
type Name = (typeof CENTERS)[number]

const servers = new Map<Name, RedisServer>()
const proxies = new Map<string, TcpProxy>()
const closers: (() => unknown)[] = []
const QUIET = { warn() {}, error() {} }

beforeAll(async () => {
  for (const name of CENTERS) servers.set(name, await startRedis())
})
beforeEach(async () => {
  for (const server of servers.values()) await server.command("FLUSHALL")
  for (const from of CENTERS) {
    for (const to of CENTERS) {
      if (from === to) continue
      const proxy = await startProxy(servers.get(to) as RedisServer)
      proxy.delayMs = ROUND_TRIP_MS / 2
      proxies.set(`${from} ${to}`, proxy)
    }
  }
})
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
  for (const proxy of proxies.values()) proxy.close()
  proxies.clear()
})
afterAll(async () => {
  for (const server of servers.values()) await server.stop()
})

async function storeAt(port: number): Promise<Store> {
  const client = new Redis(port, "127.0.0.1", { lazyConnect: true, retryStrategy: () => 10 })
  client.on("error", () => {})
  closers.push(() => client.disconnect())
  await client.connect()
  return redisStore({ client })
}

type Rule = { readonly limit: number; readonly window: string; readonly algorithm: "sliding-window" }

/** Creates one limiter with the same rule in each data center, as separate processes would. */
async function limiters(rule: Rule): Promise<Readonly<Record<Name, Limiter>>> {
  const started = CENTERS.map(async (name) => {
    const near = await storeAt((servers.get(name) as RedisServer).port)
    const others = CENTERS.filter((other) => other !== name)
    const far = await Promise.all(
      others.map(async (to) => [to, await storeAt(proxies.get(`${name} ${to}`)?.port as number)] as const),
    )
    const store = mirroredStore({ near, far: Object.fromEntries(far) })
    // Use a long timeout, so that no decision is degraded on a busy machine.
    const more = { service: "mirrors", field: "user_id", storeTimeoutMs: 5_000, logger: QUIET } as const
    const limiter = createLimiter({ ...rule, ...more, store })
    closers.push(() => limiter.close())
    closers.push(() => store.close())
    return [name, limiter] as const
  })
  return Object.fromEntries(await Promise.all(started)) as Record<Name, Limiter>
}

const ANN = { headers: { "x-user-id": "ann" } }

/** Sends requests until one is refused. Returns the number of admitted requests. */
async function exhaust(limiter: Limiter): Promise<number> {
  for (let admitted = 0; ; admitted++) {
    const { allowed, degraded } = await limiter.decide(ANN)
    expect(degraded).toBe(false)
    if (!allowed) return admitted
  }
}

async function used(limiter: Limiter): Promise<number> {
  const { checks } = await limiter.peek(ANN)
  const { current = 0, previous = 0 } = checks[0]?.counts ?? {}
  return current + previous
}

describe("three data centers, 80 ms from each other", () => {
  it("share the limit of a client that sends requests to each of them in turn", async () => {
    const all = await limiters({ limit: 20, window: "1 day", algorithm: "sliding-window" })
    let admitted = 0
    for (const name of [...CENTERS, ...CENTERS]) {
      for (let i = 0; i < 5; i++) if ((await all[name].decide(ANN)).allowed) admitted++
      await until(`all count what ${name} admitted`, async () => {
        const counts = await Promise.all(CENTERS.map((other) => used(all[other])))
        return counts.every((count) => count === admitted)
      })
    }
    expect(admitted).toBe(20)
  })

  it("each admit at most the limit in a burst, and then all count the whole burst", async () => {
    const all = await limiters({ limit: 20, window: "1 day", algorithm: "sliding-window" })
    const bursts = await Promise.all(CENTERS.map((name) => exhaust(all[name])))
    const admitted = bursts.reduce((sum, units) => sum + units, 0)
    for (const units of bursts) expect(units).toBeLessThanOrEqual(20)
    await until("all count the burst", async () => {
      const counts = await Promise.all(CENTERS.map((name) => used(all[name])))
      return counts.every((count) => count === admitted)
    })
    for (const name of CENTERS) expect((await all[name].decide(ANN)).allowed).toBe(false)
  })

  it("keep deciding while one is cut off, and agree on the counts two windows after it reconnects", async () => {
    const all = await limiters({ limit: 20, window: "1 second", algorithm: "sliding-window" })
    const lost: number[] = []
    all.ap.on("charges-lost", ({ units }) => lost.push(units))
    const links = [...proxies].filter(([link]) => link.includes("ap"))
    for (const [, proxy] of links) proxy.pause()
    // Both sides of the cut admit the full limit.
    const [us, ap] = [await exhaust(all.us), await exhaust(all.ap)]
    expect(Math.min(us, ap)).toBeGreaterThanOrEqual(20)
    await until("the cut is noticed on both sides", () => {
      const [{ mirrors: ofAp }, { mirrors: ofUs }] = [all.ap.status, all.us.status]
      return (ofAp?.us?.failingMs ?? 0) > 0 && lost.length > 0 && (ofUs?.ap?.lost ?? 0) > 0
    })
    expect(Object.keys(all.us.status.mirrors ?? {})).toEqual(["eu", "ap"])
    for (const [, proxy] of links) proxy.resume()
    await until("charges arrive again", async () => {
      await all.ap.decide(ANN)
      await all.us.decide(ANN)
      return all.ap.status.mirrors?.us?.failingMs === 0 && all.us.status.mirrors?.ap?.failingMs === 0
    })
    await until("two windows have passed", async () => {
      const counts = await Promise.all(CENTERS.map((name) => used(all[name])))
      return counts.every((count) => count === 0)
    })
    await until("all count a request", async () => {
      await all.ap.decide(ANN)
      await sleep(3 * ROUND_TRIP_MS)
      const counts = await Promise.all(CENTERS.map((name) => used(all[name])))
      return counts.every((count) => count > 0 && count === counts[0])
    })
  })
})
