import { redisStore } from "@sluice/redis"
import { beforeEach, describe, expect, it } from "vitest"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { startProxy, type TcpProxy } from "../servers/tcp-proxy.ts"
import { until } from "../servers/until.ts"
import { pairs } from "../test-length.ts"
import { keysWithoutTtl, unitsIn } from "./counted.ts"
import { afterwards, asker, checkEachTest } from "./load.ts"
import { type Library, librariesInTurn, openClient } from "./open-client.ts"

checkEachTest()

const { server } = await redisForTests({ args: ["--maxmemory-policy", "noeviction"] })
beforeEach(() => server.command("FLUSHALL"))

async function openStore(library: Library, port = server.port) {
  const { client, close } = await openClient({ library, ports: [port], isCluster: false })
  afterwards(close)
  const store = redisStore({ client })
  afterwards(() => store.close())
  return store
}

describe("a server that is out of memory", () => {
  it("degrades decisions, keeps the TTL of every key, and counts again when memory is free", async () => {
    const app = asker(await openStore("ioredis 6"))
    await Promise.all([app.askUntil(false, "192.0.2.1"), app.askUntil(false, "192.0.2.2")])
    const counted = async () => (await unitsIn(server, "")) === app.granted()
    await until("it has counted what was granted", counted)
    await server.command("CONFIG", "SET", "maxmemory", 1)
    // Count one client whose key exists and one whose key does not.
    for (const partition of ["192.0.2.1", "192.0.2.3"]) expect((await app.ask(partition)).degraded).toBe(true)
    await until("no call is waiting", () => app.decidesAtOnce())
    expect(await counted()).toBe(true)
    expect(await keysWithoutTtl(server)).toEqual([])
    const told = app.events.length
    // Redis responds but cannot count, so decisions stay degraded.
    await new Promise((resolve) => setTimeout(resolve, 400))
    expect(await app.decidesAtOnce()).toBe(true)
    expect(app.events).toHaveLength(told)
    expect(app.events.at(-1)).toBe("degraded")

    await server.command("CONFIG", "SET", "maxmemory", 0)
    await app.askUntil(false)
    await until("it has counted what was granted", counted)
    expect(await keysWithoutTtl(server)).toEqual([])
    expect(app.late).toBe(0)
  })
})

describe("a server that forgets its scripts under load", () => {
  it.each(librariesInTurn(0))("degrades no decision and loses no count (%s)", async (library) => {
    const app = asker(await openStore(library), { storeTimeoutMs: 5_000 })
    const stop = app.load()
    for (let nth = 1; nth <= 8; nth++) {
      await until("the load is on", () => app.decisions.length > nth * 20)
      await server.command("SCRIPT", "FLUSH")
    }
    await stop()
    expect(app.decisions.filter(({ degraded, allowed }) => degraded || !allowed)).toEqual([])
    expect(await unitsIn(server, "")).toBe(app.decisions.length)
    expect(app.events).toEqual([])
  })
})

const RUBBISH: readonly [string, string][] = [
  ["a status", "+OK\r\n"],
  ["an integer", ":5\r\n"],
  ["nil", "$-1\r\n"],
  ["a string", "$5\r\nhello\r\n"],
  ["a nil list", "*-1\r\n"],
  ["an empty list", "*0\r\n"],
  ["a list that is too long", "*3\r\n:1700000000000\r\n:4398046511105\r\n:1\r\n"],
  ["a list with a string instead of a counter", "*2\r\n:1700000000000\r\n$3\r\nfoo\r\n"],
  ["a list that contains nil", "*2\r\n:1700000000000\r\n$-1\r\n"],
  ["a list that contains an error", "*2\r\n:1700000000000\r\n-ERR boom\r\n"],
  ["a negative number", "*2\r\n:1700000000000\r\n:-5\r\n"],
  ["an invalid counter", "*2\r\n:1700000000000\r\n:0\r\n"],
  ["an invalid time", "*2\r\n$3\r\nnow\r\n:4398046511105\r\n"],
  ["only the time, as if the call arrived too late,", "*1\r\n:1700000000000\r\n"],
  ["an error", "-ERR boom\r\n"],
  ["NOSCRIPT to every call", "-NOSCRIPT No matching script\r\n"],
  ["BUSY", "-BUSY Redis is busy running a script\r\n"],
  ["LOADING", "-LOADING Redis is loading the dataset in memory\r\n"],
  ["another protocol", "HTTP/1.1 400 Bad Request\r\n\r\n"],
]

// Omit node-redis 5, which mistakes a reply to its next handshake for a pending reply, and is then never ready again.
const UNCONFUSED: readonly Library[] = ["ioredis 6", "node-redis 6", "ioredis 5"]

describe("a server that replies with", () => {
  it.each(pairs(RUBBISH, UNCONFUSED).map(([[what, bytes], library]) => [what, library, bytes] as const))(
    "%s degrades decisions, and is used again once its replies are valid (%s)",
    async (_what, library, bytes) => {
      const proxy: TcpProxy = await startProxy(server)
      afterwards(() => proxy.close())
      const app = asker(await openStore(library, proxy.port))
      const fresh = asker(await openStore(library, proxy.port), { service: "fresh" })
      await app.ask()
      proxy.answerWith(bytes)
      const { degraded, allowed } = await app.ask()
      expect({ degraded, allowed }).toEqual({ degraded: true, allowed: true })
      // Send more requests, also with a store that does not know the server's time yet.
      for (const one of [app, app, fresh]) expect((await one.ask()).degraded).toBe(true)
      proxy.answerWith(undefined)
      // Cut the connection, because a client that received invalid replies may assign later replies to the wrong
      // commands.
      proxy.cut()
      await app.askUntil(false)
      expect(app.late).toBe(0)
      // Redis may have counted more, because a reply that was pending when the connection was cut may be lost.
      expect(await unitsIn(server, "")).toBeGreaterThanOrEqual(app.granted())
      expect(await unitsIn(server, "")).toBeLessThanOrEqual(app.decisions.length)
    },
  )
})
