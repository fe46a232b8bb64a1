import { createLimiter, decideAll, type Store } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import { Cluster, Redis } from "ioredis"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type RedisCluster, startCluster } from "./servers/redis-cluster.ts"
import { type RedisServer, startRedis } from "./servers/redis-server.ts"

const GROUPS = 60
const PATIENCE_MS = 5_000

/**
 * Decides many groups at the same time, each with two services on the same store. Returns the numbers of admitted
 * groups, mixed and degraded decisions, and remaining units.
 */
async function race(store: Store) {
  const request = { remoteAddress: "192.0.2.7" }
  const [search, maps] = (
    [
      ["search", 40],
      ["maps", 7],
    ] as const
  ).map(([service, limit]) =>
    createLimiter({ store, service, storeTimeoutMs: PATIENCE_MS, field: "ip", limit, window: "1 hour" }),
  )
  const group = [
    { limiter: search as NonNullable<typeof search>, request },
    { limiter: maps as NonNullable<typeof maps>, request },
  ] as const
  const decided = await Promise.all(Array.from({ length: GROUPS }, () => decideAll(group)))
  const left = await Promise.all(group.map(async ({ limiter }) => (await limiter.peek(request)).remaining))
  return {
    admitted: decided.filter(({ allowed }) => allowed).length,
    mixed: decided.filter(({ decisions }) => new Set(decisions.map(({ allowed }) => allowed)).size > 1)
      .length,
    degraded: decided.filter(({ decisions }) => decisions.some(({ degraded }) => degraded)).length,
    left,
  }
}

const EXACT = { admitted: 7, mixed: 0, degraded: 0, left: [33, 0] }

describe("decideAll on Redis", () => {
  let server: RedisServer
  let client: Redis
  beforeAll(async () => {
    server = await startRedis()
    client = new Redis({ host: "127.0.0.1", port: server.port })
  })
  afterAll(async () => {
    client.disconnect()
    await server.stop()
  })

  it("admits exactly the lowest limit when many groups are decided at the same time", async () => {
    expect(await race(redisStore({ client, timeoutMs: PATIENCE_MS }))).toEqual(EXACT)
  })

  it("sends one command for all services", async () => {
    const store = redisStore({ client, timeoutMs: PATIENCE_MS, prefix: "one:" })
    const request = { remoteAddress: "192.0.2.8" }
    const group = ["a", "b", "c"].map((service) => ({
      limiter: createLimiter({ store, service, limit: 5, window: "1 hour", storeTimeoutMs: PATIENCE_MS }),
      request,
    }))
    await decideAll(group)
    const calls = async () => {
      const info = await client.info("commandstats")
      return Number(/cmdstat_evalsha:calls=(\d+)/.exec(info)?.[1])
    }
    const before = await calls()
    expect((await decideAll(group)).decisions).toMatchObject([
      { remaining: 3 },
      { remaining: 3 },
      { remaining: 3 },
    ])
    expect((await calls()) - before).toBe(1)
  })
})

describe("decideAll on a Redis Cluster", () => {
  let servers: RedisCluster
  let client: Cluster
  beforeAll(async () => {
    servers = await startCluster({ primaries: 3 })
    client = new Cluster(servers.nodes.map(({ port }) => ({ host: "127.0.0.1", port })))
  })
  afterAll(async () => {
    client.disconnect()
    await servers.stop()
  })

  it("never admits more than a limit, and refunds the units that a refused group took", async () => {
    const { admitted, mixed, degraded, left } = await race(redisStore({ client, timeoutMs: PATIENCE_MS }))
    expect({ mixed, degraded }).toEqual({ mixed: 0, degraded: 0 })
    // While a group holds units that it will refund, another group may be refused.
    expect(admitted).toBeLessThanOrEqual(7)
    expect(left).toEqual([40 - admitted, 7 - admitted])
  })
})
