import { createLimiter, type Store } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import { Cluster, Redis } from "ioredis"
import { createClient, createCluster } from "redis"
import { createClient as createClient5, createCluster as createCluster5 } from "redis5"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { freePort } from "../servers/free-port.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { startProxy, type TcpProxy } from "../servers/tcp-proxy.ts"
import { until } from "../servers/until.ts"
import { keysCountedTwice, keysWithoutTtl, unitsByKey, unitsIn } from "./counted.ts"
import { afterwards, asker, checkEachTest } from "./load.ts"

checkEachTest()

const { server } = await redisForTests()
let proxy: TcpProxy
beforeEach(async () => {
  proxy = await startProxy(server)
  afterwards(() => proxy.close())
  await server.command("FLUSHALL")
})
afterEach(async () => {
  expect(await keysWithoutTtl(server)).toEqual([])
})

interface Options {
  readonly lazyConnect?: boolean
  readonly retryStrategy?: () => number
}

/** Options of a client that reconnects immediately, so that a resent call would arrive early enough to be counted. */
const AT_ONCE: Options = { retryStrategy: () => 0 }

function ioredis(port: number, options: Options = {}): Redis {
  const client = new Redis(port, "127.0.0.1", options)
  client.on("error", () => {})
  afterwards(() => client.disconnect())
  return client
}

function nodeRedis(port: number, socketTimeout = 1_000) {
  // If a connection is reset under load, the client may assign the first replies on the next connection to earlier
  // commands. The first commands on that connection then wait forever. `socketTimeout` prevents this (node-redis
  // 6.3.1).
  const socket = { host: "127.0.0.1", port, reconnectStrategy: () => 0, socketTimeout }
  const client = createClient({ socket })
  client.on("error", () => {})
  afterwards(() => client.isOpen && client.destroy())
  return client
}

function storeOf(client: Parameters<typeof redisStore>[0]["client"]) {
  const store = redisStore({ client })
  afterwards(() => store.close())
  return store
}

async function keys(): Promise<number> {
  return Number(await server.command("DBSIZE"))
}

const CLIENTS = ["ioredis", "node-redis"]

describe.each(CLIENTS)("with %s", (library) => {
  async function connected(port: number, socketTimeout?: number) {
    if (library === "ioredis") return storeOf(ioredis(port, AT_ONCE))
    const client = nodeRedis(port, socketTimeout)
    await client.connect()
    return storeOf(client)
  }

  it("a server that is killed and restarted under load degrades decisions, and then counts again", async () => {
    const app = asker(await connected(server.port))
    const stop = app.load()
    await until("the load is on", () => app.granted() > 100)
    await server.kill()
    await until("no call is waiting", () => app.decidesAtOnce())
    const granted = app.granted()
    await server.start()
    await until("it counts again", () => app.granted() > granted + 100)
    await stop()
    // Units that were granted before the kill are lost, because the server kept them only in memory.
    await until(
      "it has counted what was granted",
      async () => (await unitsIn(server, "")) === app.granted() - granted,
    )
    expect(app.late).toBe(0)
    expect(app.events.length).toBeGreaterThan(0)
  })

  it("requests whose replies are lost with the connection are not counted twice", async () => {
    const app = asker(await connected(proxy.port), { storeTimeoutMs: 2_000 })
    await app.askUntil(false, "10.9.9.9")
    proxy.dropReplies = true
    const asked = Promise.all([app.ask("10.0.0.1"), app.ask("10.0.0.2"), app.ask("10.0.0.3")])
    await until("the server has counted", async () => (await keys()) > 1)
    proxy.cut()
    proxy.dropReplies = false
    expect((await asked).every(({ degraded }) => degraded)).toBe(true)
    await app.askUntil(false)
    expect((await unitsByKey(server, "*10.0.0.")).size).toBe(3)
    expect(await keysCountedTwice(server, "*10.0.0.")).toEqual([])
  })

  it("requests that wait for a client to connect are counted within their deadline", async () => {
    const app = asker(storeOf(library === "ioredis" ? ioredis(server.port) : notYetConnected()), {
      storeTimeoutMs: 5_000,
    })
    const decisions = await Promise.all([app.ask(), app.ask(), app.ask()])
    expect(decisions.map(({ degraded }) => degraded)).toEqual([false, false, false])
    expect(await unitsIn(server, "")).toBe(3)
  })

  function notYetConnected() {
    const client = nodeRedis(server.port)
    setTimeout(() => client.connect(), 20)
    return client
  }
})

describe("a client that", () => {
  it("connects lazily connects when the first request arrives", async () => {
    const app = asker(storeOf(ioredis(server.port, { lazyConnect: true })), { storeTimeoutMs: 5_000 })
    expect((await app.ask()).degraded).toBe(false)
  })

  it("cannot reach a server degrades the first decision at its deadline, and later decisions immediately", async () => {
    const app = asker(storeOf(ioredis(await freePort())))
    expect((await app.ask()).degraded).toBe(true)
    await until("no call is waiting", () => app.decidesAtOnce())
    expect(app.late).toBe(0)
    expect(app.events).toEqual(["degraded"])
  })

  it("never connected or was closed causes a different log line than a client that cannot connect", async () => {
    const { port } = server
    const host = "127.0.0.1"
    const rootNodes = [{ socket: { host, port } }]
    const closed = nodeRedis(port)
    await closed.connect()
    closed.destroy()
    const ended = ioredis(port)
    const endedCluster = new Cluster([{ host, port }], { lazyConnect: true })
    for (const client of [ended, endedCluster]) client.disconnect()
    await until("it has ended", () => ended.status === "end" && endedCluster.status === "end")
    const at = `Redis at ${host}:${port}`
    const rows: [string, Parameters<typeof redisStore>[0]["client"]][] = [
      [at, nodeRedis(port)],
      [at, createClient5({ socket: { host, port } })],
      ["Redis", createCluster({ rootNodes })],
      ["Redis", createCluster5({ rootNodes })],
      [at, closed],
      [at, ended],
      ["Redis", endedCluster],
    ]
    for (const [title, client] of rows) {
      expect(await loggedFirst(storeOf(client))).toBe(
        `${title} did not respond in time, because its client never connected or was closed.`,
      )
    }
  })

  /** Returns the first line that is logged when a decision is requested. */
  function loggedFirst(store: Store): Promise<string | undefined> {
    return new Promise((resolve) => {
      const logger = {
        warn() {},
        error: (_: object, message: string) => resolve(message.split("\n")[0]),
      }
      const limiter = createLimiter({ limit: 5, window: "1 minute", service: "logged", store, logger })
      afterwards(() => limiter.close())
      void limiter.decide({ remoteAddress: "192.0.2.1" })
    })
  }

  it("was closed degrades decisions, and makes all other calls reject", async () => {
    const client = ioredis(server.port)
    const store = storeOf(client)
    const app = asker(store)
    await app.askUntil(false)
    await client.quit()
    expect((await app.ask()).degraded).toBe(true)
    await until("no call is waiting", () => app.decidesAtOnce())
    expect(app.late).toBe(0)
    const key = { policy: {} as never, partition: "" }
    await expect(
      store.reset([{ ...key, policy: { algorithm: "sliding-window", counter: "12345678" } as never }]),
    ).rejects.toThrow(/^Redis at .* did not respond in time.* The store keeps trying/)
  })
})
