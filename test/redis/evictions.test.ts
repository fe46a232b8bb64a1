import { createLimiter } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest"
import { type RedisCluster, startCluster } from "../servers/redis-cluster.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import type { RedisServer } from "../servers/redis-server.ts"
import { until } from "../servers/until.ts"
import { callsOf } from "./counted.ts"
import { afterwards, checkEachTest, oneEach } from "./load.ts"
import { type Library, librariesInTurn, openClient } from "./open-client.ts"

checkEachTest()

const { server } = await redisForTests()
beforeEach(async () => {
  await server.command("FLUSHALL")
  await server.command("CONFIG", "SET", "maxmemory", 0)
  await server.command("CONFIG", "SET", "maxmemory-policy", "noeviction")
})
afterEach(() => void vi.restoreAllMocks())

/** Creates a limiter on a client of these servers, with the warnings that it logs about evictions. */
async function open(library: Library, servers: readonly RedisServer[] = [server], login?: string) {
  const ports = servers.map(({ port }) => port)
  const { client, close } = await openClient({ library, ports, isCluster: servers.length > 1 })
  afterwards(close)
  if (login !== undefined) await logIn(client, login)
  const store = redisStore({ client })
  const warnings: string[] = []
  const log = ({ code }: { readonly code: string }, message: string) => {
    if (code === "SLUICE_STORE_EVICTS") warnings.push(message)
  }
  const limiter = createLimiter({
    ...{ service: "evictions", limit: 3, window: "1 day", logger: { warn: log, error: log } },
    ...{ store, storeTimeoutMs: 20_000 },
  })
  afterwards(async () => {
    await limiter.close()
    await store.close()
  })
  const ask = (nth = 0) => limiter.decide({ remoteAddress: oneEach(nth) })
  return { ask, warnings }
}

/** Logs a client's connection in as another Redis user. */
async function logIn(client: unknown, name: string): Promise<void> {
  type Send = (words: readonly string[]) => Promise<unknown>
  const either = client as {
    call?(...words: readonly string[]): Promise<unknown>
    customCommand?: Send
    sendCommand: Send
  }
  const words = ["AUTH", name, "secret"]
  if (either.call !== undefined) await either.call(...words)
  else if (either.customCommand !== undefined) await either.customCommand(words)
  else await either.sendCommand(words)
}

const now = performance.now.bind(performance)
let aheadMs = 0

/** Moves this process's monotonic clock to the time of the next eviction check. */
function passTenSeconds(): void {
  aheadMs += 10_000
  vi.spyOn(performance, "now").mockImplementation(() => now() + aheadMs)
}

/** Makes a server evict keys. */
async function evict(): Promise<void> {
  const memory = /used_memory:(\d+)/.exec(String(await server.command("INFO", "memory")))?.[1]
  await server.command("CONFIG", "SET", "maxmemory", Number(memory) + 300_000)
  const fill = "for i = 1, 2000 do redis.call('SET', 'other' .. i, string.rep('x', 1000), 'PX', 60000) end"
  await server.command("EVAL", fill, 0)
  await until("keys are evicted", async () => {
    await server.command("SET", "one-more", "x")
    return /evicted_keys:[1-9]/.test(String(await server.command("INFO", "stats")))
  })
}

describe.each(librariesInTurn(0))("with %s", (library) => {
  it("a Redis that may evict keys is reported once at the start, and once when it has evicted keys", async () => {
    await server.command("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
    const { ask, warnings } = await open(library)
    await ask()
    await until("the policy is reported", () => warnings.length > 0)
    expect(warnings[0]).toMatch(
      /^Redis at 127\.0\.0\.1:\d+ deletes counters when it is full \(maxmemory-policy allkeys-random\), /,
    )
    await evict()
    passTenSeconds()
    await until("the evictions are reported", async () => {
      await ask(1)
      return warnings.length > 1
    })
    expect(warnings[1]).toMatch(/ evicted \d+ keys, /)
    passTenSeconds()
    for (let nth = 0; nth < 9; nth++) await ask(nth)
    expect(warnings).toHaveLength(2)
  })

  it("a Redis that does not evict keys is not reported, and decisions need no extra calls", async () => {
    const { ask, warnings } = await open(library)
    await server.command("CONFIG", "RESETSTAT")
    await ask()
    // Each check by this test calls INFO once, and the eviction watch itself calls INFO twice.
    let looks = 0
    await until("the watch has looked", async () => ((await callsOf(server)).get("info") ?? 0) - looks++ >= 2)
    await server.command("CONFIG", "RESETSTAT")
    for (let nth = 1; nth <= 20; nth++) await ask(nth)
    const calls = await callsOf(server)
    // Independent of requests, the store reads once per second. Such a call reads a key, and a first take only writes.
    const takes = (calls.get("evalsha") ?? 0) - (calls.get("get") ?? 0)
    expect([takes, calls.get("info"), calls.get("eval"), warnings]).toEqual([20, undefined, undefined, []])
  })

  it("if the Redis user may not call INFO, it is called only once, without an error or a warning", async () => {
    await server.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    await server.command("ACL", "SETUSER", "noinfo", "on", ">secret", "~*", "+@all", "-info")
    await server.command("ACL", "LOG", "RESET")
    const { ask, warnings } = await open(library, [server], "noinfo")
    const denied = async () => ((await server.command("ACL", "LOG")) as readonly unknown[]).length
    expect((await ask()).degraded).toBe(false)
    await until("the watch was refused", async () => (await denied()) > 0)
    const before = await denied()
    await server.command("ACL", "LOG", "RESET")
    passTenSeconds()
    for (let nth = 0; nth < 9; nth++) expect((await ask(nth)).degraded).toBe(false)
    expect([before, await denied(), warnings]).toEqual([1, 0, []])
  })
})

describe("in a cluster", () => {
  let cluster: RedisCluster
  beforeAll(async () => {
    cluster = await startCluster({ primaries: 3 })
  })
  afterAll(() => cluster?.stop())

  it.each(["ioredis 6", "node-redis 6"] as const)(
    "each node that evicts keys is reported with its address: %s",
    async (library) => {
      const [first, second, third] = cluster.nodes as [RedisServer, RedisServer, RedisServer]
      for (const node of [first, second])
        await node.command("CONFIG", "SET", "maxmemory-policy", "volatile-lru")
      await third.command("CONFIG", "SET", "maxmemory-policy", "noeviction")
      const { ask, warnings } = await open(library, cluster.nodes)
      await until("both nodes are reported", async () => {
        for (let nth = 0; nth < 20; nth++) await ask(nth)
        return warnings.length > 1
      })
      const titles = warnings.map((message) => /^Redis at (\S+) /.exec(message)?.[1]).sort()
      expect(titles).toEqual([first, second].map(({ host, port }) => `${host}:${port}`).sort())
    },
  )
})
