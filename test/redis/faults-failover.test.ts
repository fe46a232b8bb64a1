import { setImmediate as nextTurn } from "node:timers/promises"
import { redisStore } from "@sluice/redis"
import { Redis } from "ioredis"
import { Redis as Redis5 } from "ioredis5"
import { createClient } from "redis"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { FIXED } from "../../packages/contracts/src/store/asking.ts"
import { commandsOf } from "../../packages/redis/src/clients/commands-of.ts"
import { freePort } from "../servers/free-port.ts"
import { type RedisSentinel, startSentinel } from "../servers/redis-sentinel.ts"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"
import { startProxy } from "../servers/tcp-proxy.ts"
import { until } from "../servers/until.ts"
import { pairs } from "../test-length.ts"
import { keysCountedTwice, keysWithoutTtl, unitsIn } from "./counted.ts"
import { afterwards, asker, checkEachTest, oneEach } from "./load.ts"
import { type Library, librariesInTurn, openClient } from "./open-client.ts"

checkEachTest()

describe("a primary that becomes a replica", () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis()
  })
  beforeEach(async () => {
    await server.command("REPLICAOF", "NO", "ONE")
    await server.command("FLUSHALL")
    await server.command("CONFIG", "RESETSTAT")
  })
  afterAll(() => server?.stop())

  async function openStore(library: Library, port = server.port) {
    const { client, close } = await openClient({ library, ports: [port], isCluster: false })
    afterwards(close)
    const store = redisStore({ client })
    afterwards(() => store.close())
    return store
  }

  /** Makes the server a replica of an address where nothing responds, so that it keeps its data. */
  async function demote(): Promise<void> {
    await server.command("REPLICAOF", "127.0.0.1", await freePort())
  }

  async function foundReplica(): Promise<boolean> {
    return String(await server.command("INFO", "errorstats")).includes("errorstat_READONLY")
  }

  async function connections(): Promise<number> {
    const stats = String(await server.command("INFO", "stats"))
    return Number(/total_connections_received:(\d+)/.exec(stats)?.[1])
  }

  it.each(librariesInTurn(0))(
    "is retried until it is promoted, as long as requests wait (%s)",
    async (library) => {
      const app = asker(await openStore(library), { storeTimeoutMs: 10_000 })
      const stop = app.load()
      await until("the load is on", () => app.granted() > 100)
      await demote()
      const granted = app.granted()
      await until("the client has reconnected, to find the primary", async () => (await connections()) > 1)
      await new Promise((resolve) => setTimeout(resolve, 300))
      expect(app.granted() - granted).toBeLessThan(100)
      await server.command("REPLICAOF", "NO", "ONE")
      await until("it counts again", () => app.granted() > granted + 200)
      await stop()
      expect(app.decisions.filter(({ degraded }) => degraded)).toEqual([])
      expect(await unitsIn(server, "")).toBe(app.granted())
      expect(await connections()).toBeLessThan(20)
      expect(await keysWithoutTtl(server)).toEqual([])
    },
  )

  it("does not degrade a store's first requests if it is promoted before their deadline", async () => {
    await demote()
    const app = asker(await openStore("ioredis 6"), { storeTimeoutMs: 10_000 })
    const asked = Promise.all([app.ask(), app.ask()])
    await until("they have found a replica", foundReplica)
    await server.command("REPLICAOF", "NO", "ONE")
    expect((await asked).map(({ degraded }) => degraded)).toEqual([false, false])
  })

  it("degrades decisions at their deadline without constant reconnects, and is used again once promoted", async () => {
    const app = asker(await openStore("ioredis 6"))
    const stop = app.load()
    await until("the load is on", () => app.granted() > 100)
    await demote()
    await until("no call is waiting", () => app.decidesAtOnce())
    await new Promise((resolve) => setTimeout(resolve, 500))
    // The server responds, but decisions stay degraded while it is a replica.
    expect(await app.decidesAtOnce()).toBe(true)
    expect(await connections()).toBeLessThan(20)
    await server.command("REPLICAOF", "NO", "ONE")
    const granted = app.granted()
    await until("it counts again", () => app.granted() > granted + 100)
    await stop()
    expect(app.late).toBe(0)
    await until("it has counted what was granted", async () => (await unitsIn(server, "")) === app.granted())
  })
})

describe("a primary that is replaced behind one address, while the demoted server keeps its connections", () => {
  let servers: readonly RedisServer[]
  beforeAll(async () => {
    servers = await Promise.all([startRedis(), startRedis()])
  })
  beforeEach(async () => {
    for (const server of servers) {
      await server.command("REPLICAOF", "NO", "ONE")
      await server.command("FLUSHALL")
    }
  })
  afterAll(() => Promise.all(servers.map((server) => server.stop())))

  async function openAddress(library: Library) {
    const [first, second] = servers as [RedisServer, RedisServer]
    const proxy = await startProxy(first)
    afterwards(() => proxy.close())
    const { client, close } = await openClient({ library, ports: [proxy.port], isCluster: false })
    afterwards(close)
    const store = redisStore({ client })
    afterwards(() => store.close())
    const replace = async () => {
      proxy.target = second
      await first.command("REPLICAOF", second.host, second.port)
    }
    return { first, second, proxy, client, store, replace }
  }

  it.each(librariesInTurn(0))(
    "loses no calls, because the store connects to the new primary (%s)",
    async (library) => {
      const { second, store, replace } = await openAddress(library)
      const app = asker(store, { storeTimeoutMs: 10_000 })
      const stop = app.load(oneEach)
      await until("the load is on", () => app.granted() > 100)
      await replace()
      await until("the new primary counts", async () => Number(await second.command("DBSIZE")) > 200)
      await stop()
      expect(app.decisions.filter(({ degraded }) => degraded)).toEqual([])
      expect(await keysCountedTwice(second, "")).toEqual([])
    },
  )

  it.each(librariesInTurn(1))(
    "is also noticed by a store that only sends refunds, in the background (%s)",
    async (library) => {
      const { second, store, replace } = await openAddress(library)
      const charge = {
        policy: POLICY,
        partition: "a",
        units: -3,
        after: { startMs: 0, current: 0, previous: 0 },
      }
      const refund = async () => {
        const startMs = Math.floor(Date.now() / POLICY.windowMs) * POLICY.windowMs
        await store.refund([{ ...charge, after: { ...charge.after, startMs } }], 1_000)
      }
      await refund()
      await replace()
      await expect(refund()).rejects.toMatchObject({ outcome: "not-applied" })
      await until("the new primary is charged", () =>
        refund().then(
          () => true,
          () => false,
        ),
      )
      expect(await unitsIn(second, "")).toBeGreaterThanOrEqual(3)
    },
  )

  it.each(["node-redis 6", "node-redis 5"] as const)(
    "makes the client reconnect after the app's pending replies, at most once a second (%s)",
    async (library) => {
      const { first, second, proxy, client } = await openAddress(library)
      await first.command("SET", "app", "first")
      await second.command("SET", "app", "second")
      proxy.target = second
      const app = client as unknown as { get(key: string): Promise<string | null> }
      const commands = commandsOf(client)
      const sent = Array.from({ length: 100 }, () => app.get("app"))
      commands.reconnect("")
      expect(commands.isReady("")).toBe(false)
      expect(new Set(await Promise.all(sent))).toEqual(new Set(["first"]))
      await until("the client has reconnected", () => commands.isReady(""))
      expect(await app.get("app")).toBe("second")
      commands.reconnect("")
      expect([commands.isReady(""), await app.get("app")]).toEqual([true, "second"])
    },
  )

  it("does not make the store disconnect a client that would not reconnect", async () => {
    const [server] = servers as [RedisServer]
    const url = `redis://127.0.0.1:${server.port}`
    const lasting = createClient({ url, socket: { reconnectStrategy: false } }).on("error", () => {})
    const clients = [lasting, createClient({ url })]
    for (const client of clients) {
      await client.connect()
      afterwards(() => client.destroy())
      commandsOf(client).reconnect("")
      await client.ping()
      await nextTurn()
      expect([await client.ping(), client.socketEpoch]).toEqual(["PONG", 1])
    }
  })
})

/**
 * The most units that a store can have in flight to one primary: calls times requests per call. Redis sends a write to
 * its replica and its reply to the client in the same turn, so a replica that does not lag misses no other unit.
 */
const IN_FLIGHT = 4 * 64

describe("a primary that Sentinel replaces under load", () => {
  // After an order of Sentinel, the old primary counts until it becomes a replica, and then loses these units.
  const failovers: readonly [string, (watched: RedisSentinel) => Promise<unknown>, mostLost: number][] = [
    ["after a planned failover", replaceByOrder, Number.POSITIVE_INFINITY],
    [
      "after it was killed, and loses at most the units in flight",
      ({ primary }) => primary.kill(),
      IN_FLIGHT,
    ],
  ]
  const clients: readonly [string, typeof Redis][] = [
    ["ioredis 6", Redis],
    ["ioredis 5", Redis5 as unknown as typeof Redis],
  ]
  it.each(pairs(failovers, clients).map(([failover, client]) => [...failover, ...client] as const))(
    "is also replaced in the store, %s",
    async (_how, fail, mostLost, _library, Client) => {
      const watched = await startSentinel()
      afterwards(() => watched.stop())
      const { replica, sentinel, name } = watched
      const client = new Client({
        sentinels: [{ host: sentinel.host, port: sentinel.port }],
        name,
        retryStrategy: () => 20,
        sentinelRetryStrategy: () => 20,
      })
      client.on("error", () => {})
      afterwards(() => client.disconnect())
      const store = redisStore({ client })
      afterwards(() => store.close())
      const app = asker(store)
      const stop = app.load(oneEach)
      await until("the load is on", () => app.granted() > 100)

      await fail(watched)
      await until("the replica is the primary", async () => (await roleOf(replica)) === "master")
      const keys = async () => Number(await replica.command("DBSIZE"))
      const replicated = await keys()
      await until("it is the one that counts", async () => (await keys()) > replicated + 200)
      await stop()
      expect(app.late).toBe(0)
      expect(app.granted() - (await unitsIn(replica, ""))).toBeLessThanOrEqual(mostLost)
      expect(await keysCountedTwice(replica, "")).toEqual([])
      expect(await keysWithoutTtl(replica)).toEqual([])
    },
  )

  async function replaceByOrder({ primary, replica, sentinel, name }: RedisSentinel): Promise<void> {
    await sentinel.command("SENTINEL", "FAILOVER", name)
    await until("the replica is a primary", async () => (await roleOf(replica)) === "master")
    // Do not wait for Sentinel, which does this by itself only after more than ten seconds.
    await primary.command("REPLICAOF", replica.host, replica.port)
  }

  async function roleOf(server: RedisServer): Promise<unknown> {
    return ((await server.command("ROLE")) as unknown[])[0]
  }
})

const POLICY = { ...FIXED, windowMs: 86_400_000 }
