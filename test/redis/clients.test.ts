import { createHash } from "node:crypto"
import { setTimeout as sleep } from "node:timers/promises"
import { GlideClusterClient, Logger } from "@valkey/valkey-glide"
import { Cluster, Redis } from "ioredis"
import { Cluster as Cluster5, Redis as Redis5 } from "ioredis5"
import { Cluster as ClusterOfValkey, Redis as RedisOfValkey } from "iovalkey"
import { createClient, createCluster, RESP_TYPES } from "redis"
import { createClient as createClient5, createCluster as createCluster5 } from "redis5"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { commandsOf } from "../../packages/redis/src/clients/commands-of.ts"
import { keySlot } from "../../packages/redis/src/clients/key-slot.ts"
import type { RedisCommands } from "../../packages/redis/src/commands.ts"
import { freePort } from "../servers/free-port.ts"
import { type RedisCluster, startCluster } from "../servers/redis-cluster.ts"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"
import { startProxy, type TcpProxy } from "../servers/tcp-proxy.ts"
import { until } from "../servers/until.ts"

/** A script that counts how often it has run. */
const COUNT = "return redis.call('INCRBY', KEYS[1], ARGV[1])"
const SHA = createHash("sha1").update(COUNT).digest("hex")

interface Options {
  readonly keyPrefix?: string
  readonly autoPipelining?: boolean
}

/** A client that is not connected yet. */
interface Made {
  readonly commands: RedisCommands
  connect(): Promise<unknown>
}

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

interface IoredisClient {
  connect(): Promise<unknown>
  disconnect(): void
  on(event: "error", listener: () => void): unknown
}

function ioredis(client: IoredisClient): Made {
  client.on("error", () => {})
  closers.push(() => client.disconnect())
  return { commands: commandsOf(client), connect: () => client.connect() }
}

interface NodeRedisClient {
  connect(): Promise<unknown>
  destroy(): void
  on(event: "error", listener: () => void): unknown
}

function nodeRedis(client: NodeRedisClient): Made {
  client.on("error", () => {})
  let connected = false
  closers.push(() => connected && client.destroy())
  const connect = async (): Promise<void> => {
    connected = true
    await client.connect()
  }
  return { commands: commandsOf(client), connect }
}

const retryAtOnce = (): number => 0

function ioredisOptions({ keyPrefix, autoPipelining = false }: Options): object {
  return {
    lazyConnect: true,
    retryStrategy: retryAtOnce,
    enableAutoPipelining: autoPipelining,
    ...(keyPrefix === undefined ? {} : { keyPrefix }),
  }
}

function socket(port: number): { host: string; port: number; reconnectStrategy: () => number } {
  return { host: "127.0.0.1", port, reconnectStrategy: retryAtOnce }
}

type MakeSingle = (port: number, options?: Options) => Made

const SINGLE: readonly (readonly [string, MakeSingle])[] = [
  ["ioredis 6", (port, options = {}) => ioredis(new Redis(port, ioredisOptions(options)))],
  ["ioredis 5", (port, options = {}) => ioredis(new Redis5(port, ioredisOptions(options)))],
  ["iovalkey", (port, options = {}) => ioredis(new RedisOfValkey(port, ioredisOptions(options)))],
  [
    "node-redis 6",
    (port, options = {}) => nodeRedis(createClient({ socket: socket(port), ...prefixed(options) })),
  ],
  ["node-redis 5", (port) => nodeRedis(createClient5({ socket: socket(port) }))],
]

function prefixed({ keyPrefix }: Options): { keyPrefix?: string } {
  return keyPrefix === undefined ? {} : { keyPrefix }
}

describe.each(SINGLE)("the commands object of a %s client on one server", (name, make) => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server.stop())
  afterEach(async () => {
    await server.start()
    await server.command("FLUSHALL")
    await server.command("SCRIPT", "FLUSH")
  })

  it("runs scripts and deletes keys", async () => {
    const { commands, connect } = make(server.port)
    await connect()
    await expect(commands.evalsha(SHA, ["a"], ["2"])).rejects.toThrow(/^NOSCRIPT /)
    expect(await commands.eval(COUNT, ["a"], ["2"])).toBe(2)
    expect(await commands.evalsha(SHA, ["a"], ["3"])).toBe(5)
    expect(await commands.eval("return {#KEYS, KEYS[2], #ARGV, ARGV[1]}", ["a", "é"], ["x y"])).toEqual([
      2,
      "é",
      1,
      "x y",
    ])
    expect(await commands.del(["a", "b"])).toBe(1)
    expect(await server.command("EXISTS", "a")).toBe(0)
    await expect(commands.eval("return redis.error_reply('OOPS it')", ["a"], [""])).rejects.toThrow(/^OOPS /)
  })

  it("is ready while connected", async () => {
    const { commands, connect } = make(server.port)
    if (name.startsWith("node")) expect(commands.isReady("a")).toBe(false)
    await connect()
    expect(commands.isReady("a")).toBe(true)
    await server.kill()
    await until("it notices", () => !commands.isReady("a"))
    await server.restart()
    await until("it is connected again", () => commands.isReady("a"))
    expect(await commands.eval(COUNT, ["a"], ["1"])).toBe(1)
  })

  it.each([false, true])(
    "never repeats a call whose reply was lost (auto-pipelining %s)",
    async (autoPipelining) => {
      const proxy = await startProxy(server)
      closers.push(() => proxy.close())
      const { commands, connect } = make(proxy.port, { autoPipelining })
      await connect()
      await commands.eval(COUNT, ["warm"], ["1"])
      proxy.dropReplies = true
      // Make several calls, because ioredis handles each call by its position in the queue.
      const calls = ["a", "b", "c"].map((key) => commands.evalsha(SHA, [key], ["1"]))
      calls.push(commands.eval(COUNT, ["d"], ["1"]))
      const outcomes = Promise.allSettled(calls)
      await until("the server ran them", async () => (await server.command("GET", "d")) === "1")
      proxy.cut()
      proxy.dropReplies = false
      expect((await outcomes).map(({ status }) => status)).toEqual(Array(4).fill("rejected"))
      await until("it is connected again", () => commands.isReady("a"))
      await commands.eval(COUNT, ["warm"], ["1"])
      expect(await server.command("MGET", "a", "b", "c", "d", "warm")).toEqual(["1", "1", "1", "1", "2"])
    },
  )

  // node-redis 5 has no `keyPrefix` option.
  if (name !== "node-redis 5") {
    it("applies the client's own key prefix", async () => {
      const { commands, connect } = make(server.port, { keyPrefix: "app:" })
      await connect()
      await commands.eval(COUNT, ["a"], ["1"])
      await commands.evalsha(SHA, ["a"], ["1"])
      expect(await server.command("KEYS", "*")).toEqual(["app:a"])
      expect(await server.command("GET", "app:a")).toBe("2")
      expect(await commands.del(["a"])).toBe(1)
    })
  }
})

type MakeIoredis = (port: number, options: object) => Redis

const IOREDIS: readonly (readonly [string, MakeIoredis])[] = [
  ["ioredis 6", (port, options) => new Redis(port, options)],
  // The tests use only members that both versions have.
  ["ioredis 5", (port, options) => new Redis5(port, options) as unknown as Redis],
]

describe.each(IOREDIS)("the commands object of an %s client", (_, make) => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server.stop())

  it("tries to connect only once, and leaves a failed connection to the app", async () => {
    const client = make(await freePort(), { lazyConnect: true, retryStrategy: () => null })
    const errors: Error[] = []
    client.on("error", (error: Error) => errors.push(error))
    const commands = commandsOf(client)
    expect(commands.isReady("a")).toBe(false)
    expect(commands.isReady("a")).toBe(false)
    await until("it gave up", () => client.status === "end")
    expect(errors.map(({ message }) => message)).toEqual([expect.stringMatching(/ECONNREFUSED/)])
    expect(commands.isReady("a")).toBe(false)
    expect(client.status).toBe("end")
    await expect(commands.evalsha(SHA, ["a"], ["1"])).rejects.toThrow("Connection is closed.")
  })

  it("adds no error listener to the client", () => {
    const client = make(server.port, { lazyConnect: true })
    closers.push(() => client.disconnect())
    commandsOf(client)
    expect(client.listenerCount("error")).toBe(0)
  })

  it("does not prevent the client from resending the app's own commands", async () => {
    const proxy = await startProxy(server)
    closers.push(() => proxy.close())
    const client = make(proxy.port, { lazyConnect: true, retryStrategy: retryAtOnce })
    const { commands, connect } = ioredis(client)
    await connect()
    proxy.dropReplies = true
    const own = client.eval(COUNT, 1, "own", "1")
    const ours = commands.eval(COUNT, ["ours"], ["1"])
    const pipeline = client.pipeline().incr("p").incr("q").exec()
    await until("the server ran them", async () => (await server.command("GET", "q")) === "1")
    const refused = expect(ours).rejects.toThrow("aborted")
    proxy.cut()
    proxy.dropReplies = false
    expect(await own).toBe(2)
    expect(await pipeline).toEqual([
      [null, 2],
      [null, 2],
    ])
    await refused
    expect(await server.command("GET", "ours")).toBe("1")
  })
})

/** The client setting of an app that stores bytes in Redis. */
const IN_BYTES = { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } }

describe.each([
  [
    "createClient of node-redis 6",
    (port: number) => createClient({ socket: socket(port), commandOptions: IN_BYTES }),
  ],
  [
    "createClient of node-redis 5",
    (port: number) => createClient5({ socket: socket(port), commandOptions: IN_BYTES }),
  ],
  [
    "withTypeMapping",
    (port: number) => createClient({ socket: socket(port) }).withTypeMapping(IN_BYTES.typeMapping),
  ],
])("a client that returns bytes (configured with %s)", (_, make) => {
  it("returns strings to the store, but bytes to the app", async () => {
    const server = await startRedis()
    closers.push(() => server.stop())
    const client = make(server.port)
    const { commands, connect } = nodeRedis(client)
    await connect()
    expect(await commands.eval("return { ARGV[1], 7 }", ["k"], ["text"])).toEqual(["text", 7])
    expect(await client.eval("return { ARGV[1], 7 }", { keys: ["k"], arguments: ["text"] })).toEqual([
      Buffer.from("text"),
      7,
    ])
  })
})

type Address = { host: string; port: number }
interface ClusterOptions extends Options {
  readonly lazy?: boolean
  /** The "host:port" of each node, as the node itself announces it. */
  readonly map?: Record<string, Address>
}
type MakeCluster = (ports: readonly number[], options?: ClusterOptions) => Made | Promise<Made>

/** Opens a cluster client of Valkey GLIDE, which is connected already when the app receives it. */
async function glide(ports: readonly number[], { map }: ClusterOptions): Promise<Made> {
  Logger.setLoggerConfig("off")
  const addressResolver = (host: string, port: number): [string, number] => {
    const to = map?.[`${host}:${port}`]
    return to === undefined ? [host, port] : [to.host, to.port]
  }
  const client = await GlideClusterClient.createClient({
    addresses: addresses(ports),
    requestTimeout: 20_000,
    ...(map === undefined ? {} : { addressResolver }),
  })
  closers.push(() => client.close())
  const commands = commandsOf(client)
  return { commands, connect: async () => commands.isReady("a") }
}

function ioredisClusterOptions({ map, keyPrefix, lazy = true }: ClusterOptions): object {
  return {
    lazyConnect: lazy,
    ...(map === undefined ? {} : { natMap: map }),
    ...prefixed({ ...(keyPrefix === undefined ? {} : { keyPrefix }) }),
  }
}

function addresses(ports: readonly number[]): Address[] {
  return ports.map((port) => ({ host: "127.0.0.1", port }))
}

function nodeRedisClusterOptions(ports: readonly number[], options: ClusterOptions): object {
  const { map, keyPrefix } = options
  return {
    rootNodes: ports.map((port) => ({ socket: socket(port) })),
    defaults: { socket: { reconnectStrategy: () => 10 } },
    ...(map === undefined ? {} : { nodeAddressMap: map }),
    ...(keyPrefix === undefined ? {} : { keyPrefix }),
  }
}

const CLUSTER: readonly (readonly [string, MakeCluster])[] = [
  ["ioredis 6", (ports, o = {}) => ioredis(new Cluster(addresses(ports), ioredisClusterOptions(o)))],
  ["ioredis 5", (ports, o = {}) => ioredis(new Cluster5(addresses(ports), ioredisClusterOptions(o)))],
  [
    "ioredis 6 whose nodes reconnect",
    (ports, o = {}) =>
      ioredis(
        new Cluster(addresses(ports), { ...ioredisClusterOptions(o), clusterNodeRetryStrategy: retryAtOnce }),
      ),
  ],
  [
    "node-redis 6",
    (ports, o = {}) =>
      nodeRedis(createCluster(nodeRedisClusterOptions(ports, o) as Parameters<typeof createCluster>[0])),
  ],
  [
    "node-redis 5",
    (ports, o = {}) =>
      nodeRedis(createCluster5(nodeRedisClusterOptions(ports, o) as Parameters<typeof createCluster5>[0])),
  ],
  [
    "node-redis 6 that connects to a node when it is needed",
    (ports, o = {}) =>
      nodeRedis(
        createCluster({
          ...(nodeRedisClusterOptions(ports, o) as Parameters<typeof createCluster>[0]),
          minimizeConnections: true,
        }),
      ),
  ],
  ["iovalkey", (ports, o = {}) => ioredis(new ClusterOfValkey(addresses(ports), ioredisClusterOptions(o)))],
  ["Valkey GLIDE", (ports, o = {}) => glide(ports, o)],
]

const KEYS = ["a", "b", "c", "{x}y", "{x}z", "é"]

describe("the commands object of a cluster client", () => {
  let cluster: RedisCluster
  const ports = (): number[] => cluster.nodes.filter((node) => node.running).map(({ port }) => port)
  const roots = () => ports().map((port) => ({ socket: socket(port) }))
  const nameOf = async (key: string): Promise<string> => `127.0.0.1:${(await cluster.primaryOf(key)).port}`
  const count = async (key: string): Promise<unknown> => (await cluster.primaryOf(key)).command("GET", key)
  beforeAll(async () => {
    cluster = await startCluster({ primaries: 3, replicas: 1 })
  })
  afterAll(() => cluster.stop())
  afterEach(async () => {
    for (const key of new Set(KEYS)) await (await cluster.primaryOf(key)).command("FLUSHALL")
    for (const node of cluster.nodes) if (node.running) await node.command("SCRIPT", "FLUSH")
  })

  it("computes the same slot for a key as Redis", async () => {
    const node = cluster.nodes[0] as RedisServer
    const texts = [
      "",
      "{",
      "}",
      "{}",
      "{}a",
      "a{b",
      "a}b{c",
      "{a}",
      "x{a}y",
      "{{a}}",
      "{a}{b}",
      "ключ",
      "{é}x",
      "x{日本}",
      "\u{1f600}",
    ]
    for (let i = 0; i < 200; i++) texts.push(`sl2:{${i.toString(16)}}ab:user-${i * 7919}`, `k${i}`)
    for (const text of texts)
      expect([text, keySlot(text)]).toEqual([text, await node.command("CLUSTER", "KEYSLOT", text)])
  })

  it.each(CLUSTER)("runs scripts on the node that serves the key: %s", async (_, make) => {
    const { commands, connect } = await make(ports())
    await connect()
    for (const key of KEYS) {
      await until("it is connected to the node", () => commands.isReady(key))
      expect(commands.nodeOf(key)).toBe(await nameOf(key))
    }
    await expect(commands.evalsha(SHA, ["a"], ["1"])).rejects.toThrow(/^NOSCRIPT /)
    for (const key of KEYS) {
      expect(await commands.eval(COUNT, [key], ["2"])).toBe(2)
      expect(await commands.evalsha(SHA, [key], ["1"])).toBe(3)
    }
    expect(await commands.del(["{x}y", "{x}z"])).toBe(2)
    await expect(commands.eval(COUNT, ["a", "b"], ["1"])).rejects.toThrow(/CROSSSLOT/)
  })

  it.each([
    ["node-redis 6", () => createCluster({ rootNodes: roots(), commandOptions: IN_BYTES })],
    ["node-redis 5", () => createCluster5({ rootNodes: roots(), commandOptions: IN_BYTES })],
  ])("returns strings, even if the client is configured to return bytes: %s", async (_, make) => {
    const { commands, connect } = nodeRedis(make())
    await connect()
    expect(await commands.eval("return { ARGV[1], 7 }", ["a"], ["text"])).toEqual(["text", 7])
  })

  it.each(CLUSTER.slice(0, 5))("is not ready before it is connected: %s", async (name, make) => {
    const { commands, connect } = await make(ports())
    expect(commands.isReady("a")).toBe(false)
    if (name.startsWith("node")) await connect()
    await until("it is connected", () => commands.isReady("a"))
  })

  it.each(CLUSTER.filter(([name]) => name !== "node-redis 5" && name !== "Valkey GLIDE"))(
    "includes the client's key prefix when it computes the slot: %s",
    async (_, make) => {
      // The prefix contains the hash tag, so all keys are in its slot.
      const { commands, connect } = await make(ports(), { keyPrefix: "{app}" })
      await connect()
      expect(await commands.eval(COUNT, ["a"], ["1"])).toBe(1)
      expect(await count("{app}a")).toBe("1")
      for (const key of KEYS) expect(commands.nodeOf(key)).toBe(await nameOf("{app}"))
      expect(await commands.del(["a"])).toBe(1)
    },
  )

  it.each(CLUSTER)("never repeats a call whose reply was lost: %s", async (_, make) => {
    const proxies = new Map<number, TcpProxy>()
    const map: Record<string, Address> = {}
    for (const { port, host } of cluster.nodes) {
      const proxy = await startProxy({ host, port })
      closers.push(() => proxy.close())
      proxies.set(port, proxy)
      map[`127.0.0.1:${port}`] = { host: proxy.host, port: proxy.port }
    }
    const { commands, connect } = await make(ports(), { map })
    await connect()
    await until("it is connected to the node", () => commands.isReady("b"))
    await commands.eval(COUNT, ["b"], ["1"])
    const proxy = proxies.get((await cluster.primaryOf("b")).port) as TcpProxy
    proxy.dropReplies = true
    const calls = [commands.evalsha(SHA, ["b"], ["1"]), commands.eval(COUNT, ["b"], ["1"])]
    const outcomes = Promise.allSettled(calls)
    await until("the server ran them", async () => (await count("b")) === "3")
    proxy.cut()
    proxy.dropReplies = false
    expect((await outcomes).map(({ status }) => status)).toEqual(["rejected", "rejected"])
    await until("it can be asked again", () => commands.isReady("b"))
    // Wait longer than ioredis waits before it tries another node.
    await sleep(150)
    expect(await commands.eval(COUNT, ["b"], ["1"])).toBe(4)
  })

  it("follows a coordinated failover without a failed call, and then reports the new node", async () => {
    const clients = await Promise.all(
      CLUSTER.map(async ([name, make]) => ({ name, ...(await make(ports())) })),
    )
    for (const { connect } of clients) await connect()
    const before = await nameOf("c")
    const i = cluster.nodes.findIndex(({ port }) => before.endsWith(`:${port}`))
    const after = `127.0.0.1:${(await cluster.failover(i)).port}`
    expect(after).not.toBe(before)
    for (const [turn, { name, commands }] of clients.entries()) {
      // The store reads the map for GLIDE without a call, and perhaps only after the failover.
      if (name !== "Valkey GLIDE") expect(`${name}: ${commands.nodeOf("c")}`).toBe(`${name}: ${before}`)
      expect(await commands.eval(COUNT, ["c"], ["1"])).toBe(turn + 1)
      await until("it names the new node", () => commands.nodeOf("c") === after)
      expect(commands.isReady("c")).toBe(true)
    }
  })

  it("finds the new primary after the old primary is killed, even if no calls are sent meanwhile", async () => {
    const clients = await Promise.all(
      CLUSTER.map(async ([name, make]) => ({ name, ...(await make(ports())) })),
    )
    for (const { commands, connect } of clients) {
      await connect()
      await commands.eval(COUNT, ["c"], ["1"])
    }
    const before = await nameOf("c")
    const killed = cluster.nodes.find(({ port }) => before.endsWith(`:${port}`)) as RedisServer
    await killed.kill()
    for (const { name, commands } of clients) {
      await until(`${name} finds it`, () => commands.isReady("c") && commands.nodeOf("c") !== before)
      expect(await commands.eval(COUNT, ["c"], ["1"])).toEqual(expect.any(Number))
    }
  })
})
