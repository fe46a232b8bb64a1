import { type ChildProcess, spawn } from "node:child_process"
import { readFile } from "node:fs/promises"
import { setTimeout as sleep } from "node:timers/promises"
import { runInNewContext } from "node:vm"
import { createLimiter, type Store } from "@sluice/core"
import type { RateRule } from "@sluice/core/adapters"
import { peekStore } from "@sluice/core/stores"
import { type RedisActivityOptions, redisActivity, redisStore } from "@sluice/redis"
import { GlideClient, GlideClusterClient, Logger } from "@valkey/valkey-glide"
import { Cluster, Redis } from "ioredis"
import { createClient, createCluster } from "redis"
import { describe, expect, it } from "vitest"
import { KINDS_OF_RULE } from "../../packages/core/src/limiter/rule-set/testing/kinds-of-rule.ts"
import { keyNamer } from "../../packages/redis/src/key.ts"
import type { Block } from "../docs/blocks.ts"
import { commandLines } from "../docs/shell/words.ts"
import { blocksTestedBy } from "../docs/shown.ts"
import { freePort } from "../servers/free-port.ts"
import { startCluster } from "../servers/redis-cluster.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { startProxy } from "../servers/tcp-proxy.ts"
import { until } from "../servers/until.ts"
import { everyNth } from "../test-length.ts"
import { unitsIn } from "./counted.ts"
import { MONTHLY_CHECK } from "./monthly-check.ts"
import { startSlotMove } from "./slot-move.ts"

const root = new URL("../../", import.meta.url)
const guide = await readFile(new URL("docs/production/redis.md", root), "utf8")

const { server } = await redisForTests()

/** Long enough for a busy machine. A mistake in the guide causes an error and not a slow reply. */
const storeTimeoutMs = 20_000

/**
 * Calls all methods of a limiter for a client, under a rule with these members. Returns the messages of store
 * failures.
 */
async function failuresOf(store: Store, members: Partial<RateRule>): Promise<readonly string[]> {
  const limiter = createLimiter({
    ...{ store, storeTimeoutMs, service: "everything", logger: { warn() {}, error() {} } },
    ...{ field: "ip", limit: 3, window: "1 day", ...members },
  })
  const failures: string[] = []
  limiter.on("store-error", ({ message }) => failures.push(message))
  const ann = { remoteAddress: "192.0.2.1" }
  await limiter.refund(await limiter.decide(ann))
  await limiter.settle(await limiter.takeUpTo(ann, 2), 1)
  await limiter.acquire(ann, { maxWaitMs: 0 }).catch(() => undefined)
  for (let n = 0; n < 4; n++) await limiter.decide(ann)
  await limiter.peek(ann)
  await limiter.reset(ann)
  await limiter.close()
  return failures
}

describe("the client options of the guide", () => {
  /** Returns the client options that the guide recommends, but with shorter times. */
  const setOf = (library: string): { readonly socket?: object } => {
    const [, text = ""] = new RegExp(`^\\| ${library} \\d.*\\| \`(.+?)\` \\|$`, "m").exec(guide) ?? []
    return runInNewContext(`({ ${text.replace("5_000", "200").replace("1_000", "20")} })`) as {
      socket?: object
    }
  }

  it.each(["ioredis", "node-redis"])(
    "keep a client usable after idle time, and make it replace a connection without replies: %s",
    async (library) => {
      const proxy = await startProxy(server)
      const place = { host: "127.0.0.1", port: proxy.port }
      const set = setOf(library)
      const client =
        library === "ioredis"
          ? new Redis({ ...place, ...set })
          : await createClient({ ...set, socket: { ...set.socket, ...place } })
              .on("error", () => undefined)
              .connect()
      client.on("error", () => undefined)
      let lost = 0
      client.on("reconnecting", () => lost++)
      try {
        const store = redisStore({ client, timeoutMs: storeTimeoutMs })
        await store.take([MONTHLY_CHECK])
        // Be idle for longer than the timeout of a silent connection.
        await sleep(400)
        await peekStore(store, [MONTHLY_CHECK])
        proxy.pause()
        const before = lost
        Promise.resolve(peekStore(store, [MONTHLY_CHECK])).catch(() => undefined)
        await until("the client has given the connection up", () => lost > before)
        proxy.resume()
        expect(await store.take([MONTHLY_CHECK])).toMatchObject({ checks: [{ taken: 1 }] })
      } finally {
        if ("destroy" in client) client.destroy()
        else client.disconnect()
        await proxy.close()
      }
    },
  )
})

describe("the ACL of the guide", () => {
  const [block] = blocksTestedBy("test/redis/guide.test.ts", "docs/production/redis.md", 1) as [Block]
  const line = commandLines(block.text)[0]?.words.slice(3) ?? []
  /** Returns the additional permissions for a case of the guide's table. */
  const additionsFor = (what: string): string[] =>
    new RegExp(`^\\| ${what} \\| \`(.+?)\` \\|$`, "m").exec(guide)?.[1]?.replaceAll("\\|", "|").split(" ") ??
    []

  const forActivity = additionsFor("\\[`redisActivity`]\\(.+\\)")

  /** Expects that processes with these clients see what each of them has stored, and that somebody watches. */
  async function expectExchange(clients: readonly RedisActivityOptions["client"][]): Promise<void> {
    const boards = clients.map((client) => redisActivity({ client }))
    for (const [i, board] of boards.entries()) await board.exchange(`${i}`, `text ${i} äöü`, false)
    for (const [i, board] of boards.entries()) {
      const { isWatched, isFull, texts } = await board.exchange("reader", undefined, true)
      expect([isWatched, isFull]).toEqual([i > 0, false])
      expect([...texts].sort()).toEqual(clients.map((_, i) => `text ${i} äöü`))
    }
  }

  const glideOptions = (nodes: readonly { host: string; port: number }[]) => ({
    addresses: nodes.map(({ host, port }) => ({ host, port })),
    credentials: { username: "sluice", password: "secret" },
    requestTimeout: storeTimeoutMs,
  })

  it.each([
    ...KINDS_OF_RULE,
    ["rules that count refusals", { countRejected: true }],
    ["rules with a penalty", { penalty: { refusals: 2, for: "1 day" } }],
    [
      "strict rules with a penalty",
      { algorithm: "sliding-window-strict", penalty: { refusals: 2, for: "1 day" } },
    ],
    ["rules that queue", { throttle: { kind: "queue" } }],
  ] as const)("permits every operation for %s", async (_kind, members) => {
    await server.command("ACL", "SETUSER", ...line)
    const client = new Redis({ host: server.host, port: server.port, username: "sluice", password: "secret" })
    try {
      const store = redisStore({ client, timeoutMs: storeTimeoutMs })
      expect(await failuresOf(store, members)).toEqual([])
    } finally {
      client.disconnect()
    }
  })

  it("permits a database other than 0 if the addition for databases is used", async () => {
    const more = additionsFor("a database other than 0")
    await server.command("ACL", "SETUSER", ...line, ...more, ...forActivity)
    const login = { username: "sluice", password: "secret" }
    const ioredis = new Redis({ host: server.host, port: server.port, db: 1, ...login })
    ioredis.on("error", () => undefined)
    const socket = { host: server.host, port: server.port, reconnectStrategy: false as const }
    const nodeRedis = createClient({ socket, database: 2, ...login })
    nodeRedis.on("error", () => undefined)
    Logger.setLoggerConfig("off")
    const glide = await GlideClient.createClient({ ...glideOptions([server]), databaseId: 3 })
    try {
      await nodeRedis.connect()
      for (const client of [ioredis, nodeRedis, glide]) {
        await redisStore({ client, timeoutMs: storeTimeoutMs }).take([MONTHLY_CHECK])
        await expectExchange([client])
      }
      expect(String(await server.command("INFO", "keyspace"))).toMatch(
        /db1:keys=2.*\r\ndb2:keys=2.*\r\ndb3:keys=2/,
      )
    } finally {
      glide.close()
      ioredis.disconnect()
      if (nodeRedis.isOpen) nodeRedis.destroy()
    }
  })

  it("permits a cluster if the addition for clusters is used, even while a slot moves", async () => {
    const more = additionsFor("every node of a cluster")
    const cluster = await startCluster({ primaries: 3 })
    const login = { username: "sluice", password: "secret" }
    const nodes = cluster.nodes.map(({ host, port }) => ({ host, port }))
    const ioredis = new Cluster(nodes, { redisOptions: login, lazyConnect: true })
    const nodeRedis = createCluster({ rootNodes: nodes.map((socket) => ({ socket })), defaults: login })
    for (const client of [ioredis, nodeRedis]) client.on("error", () => undefined)
    let glide: GlideClusterClient | undefined
    try {
      for (const node of cluster.nodes) await node.command("ACL", "SETUSER", ...line, ...more, ...forActivity)
      await nodeRedis.connect()
      glide = await GlideClusterClient.createClient(glideOptions(nodes))
      const clients = [ioredis, nodeRedis, glide]
      const stores = clients.map((client) => redisStore({ client, denyCacheMs: 0 }))
      let counted = 0
      const takeByEach = async () => {
        for (const store of stores) {
          const answer = await store.take([MONTHLY_CHECK], storeTimeoutMs)
          expect(answer?.checks[0]?.state.current).toBe(++counted)
        }
      }
      await takeByEach()
      await expectExchange(clients)
      const key = keyNamer("")(MONTHLY_CHECK)
      const { move, finish } = await startSlotMove(cluster, key)
      await move(key)
      await takeByEach()
      await finish()
      await takeByEach()
    } finally {
      ioredis.disconnect()
      if (nodeRedis.isOpen) nodeRedis.destroy()
      glide?.close()
      await cluster.stop()
    }
  })
})

describe("the examples with REDIS_URL", () => {
  async function start(name: string, port: number): Promise<ChildProcess> {
    const child = spawn(process.execPath, ["--import", "tsx", `src/${name}.ts`], {
      cwd: new URL("examples/", root),
      env: { ...process.env, PORT: String(port), REDIS_URL: `redis://${server.host}:${server.port}` },
    })
    await new Promise<void>((resolve, reject) => {
      let said = ""
      const listen = (text: Buffer): void => {
        said += text
        if (said.includes(`:${port}`)) resolve()
      }
      child.stdout.on("data", listen)
      child.stderr.on("data", listen)
      child.once("close", (code) => reject(new Error(`It ended with ${code}: ${said}`)))
    })
    return child
  }

  it.each(everyNth(3, ["express", "koa", "fastify"]))(
    "share one counter between two instances of %s",
    async (name) => {
      await server.command("FLUSHALL")
      const ports = [await freePort(), await freePort()]
      const children = await Promise.all(ports.map((port) => start(name, port)))
      try {
        let counted = 0
        while (counted < 6) {
          const response = await fetch(`http://127.0.0.1:${ports[counted % 2]}/`)
          expect(response.status).toBe(200)
          // On a busy machine, a request may be decided without Redis. Its response then has no RateLimit header.
          if (response.headers.has("ratelimit")) counted++
        }
        // One client has one counter, whichever instance receives the request. A minute may have ended meanwhile, so
        // the previous window counts too.
        expect(await server.command("DBSIZE")).toBe(1)
        expect(await unitsIn(server, "sl2:")).toBeGreaterThanOrEqual(6)
      } finally {
        for (const child of children) child.kill()
      }
    },
  )
})
