import { Redis as UpstashRedis } from "@upstash/redis"
import { GlideClient, GlideClusterClient } from "@valkey/valkey-glide"
import { Cluster, Redis } from "ioredis"
import { Cluster as Cluster5, Redis as Redis5 } from "ioredis5"
import { Cluster as ClusterOfValkey, Redis as RedisOfValkey } from "iovalkey"
import { createClient, createClientPool, createCluster, createSentinel } from "redis"
import { createClient as createClient5, createCluster as createCluster5 } from "redis5"
import { afterAll, describe, expect, it } from "vitest"
import { InvalidOptionError } from "../../packages/core/src/ground/errors.ts"
import { commandsOf, type RedisClient } from "../../packages/redis/src/clients/commands-of.ts"

const NODE = { host: "127.0.0.1", port: 1 }
const ROOT = { rootNodes: [{ socket: NODE }] }
const LAZY = { lazyConnect: true } as const

const AT = "127.0.0.1:1"
const USUAL = "localhost:6379"

/**
 * Clients that do not connect by themselves, with the name of their server in messages. Type-checking this list
 * proves that the store accepts their types.
 */
const SINGLE: readonly (readonly [string, () => RedisClient, string])[] = [
  ["Redis of ioredis 6", () => new Redis({ ...NODE, ...LAZY }), AT],
  [
    "Redis of ioredis 6 with the replies of RESP3",
    () => new Redis({ ...LAZY, protocol: 3, replyMapping: "resp3" }),
    USUAL,
  ],
  ["Redis of ioredis 5", () => new Redis5({ ...NODE, ...LAZY }), AT],
  ["Redis of ioredis 5 with Sentinel", () => new Redis5({ sentinels: [NODE], name: "main", ...LAZY }), ""],
  ["the client of node-redis 6", () => createClient({ socket: NODE }), AT],
  [
    "the client of node-redis 6 with another type mapping",
    () => createClient({ RESP: 2 }).withTypeMapping({ 58: String }),
    USUAL,
  ],
  ["the client of node-redis 5", () => createClient5({ socket: NODE }), AT],
]
const CLUSTER: readonly (readonly [string, () => RedisClient])[] = [
  ["Cluster of ioredis 6", () => new Cluster([NODE], LAZY)],
  ["Cluster of ioredis 5", () => new Cluster5([NODE], LAZY)],
  ["the cluster of node-redis 6", () => createCluster(ROOT)],
  ["the cluster of node-redis 5", () => createCluster5(ROOT)],
]

const addresses = [NODE]
const readingGlide = await GlideClient.createClient({ addresses, lazyConnect: true, readOnly: true })
const glides = await Promise.all([
  GlideClient.createClient({ addresses, lazyConnect: true }),
  GlideClusterClient.createClient({ addresses, lazyConnect: true }),
])
afterAll(() => {
  for (const client of [readingGlide, ...glides]) client.close()
})

function nameAndMake([name, make]: readonly [string, () => RedisClient, ...unknown[]]) {
  return [name, make] as const
}

describe("commandsOf", () => {
  it.each(SINGLE)("recognizes %s as a client of one server", (_, make, address) => {
    const commands = commandsOf(make())
    expect(commands.isCluster).toBe(false)
    expect(commands.nodeOf("a")).toBe(address)
  })

  it.each(CLUSTER)("recognizes %s as a client of a cluster", (_, make) => {
    const commands = commandsOf(make())
    expect(commands.isCluster).toBe(true)
    // The client has not discovered any node yet.
    expect(commands.nodeOf("a")).toBe("")
  })

  it.each([
    ["Redis of iovalkey", new RedisOfValkey({ ...NODE, ...LAZY }), false, AT],
    ["Cluster of iovalkey", new ClusterOfValkey([NODE], LAZY), true, ""],
    ["GlideClient", glides[0], false, AT],
    ["GlideClusterClient", glides[1], true, ""],
  ] as const)("recognizes %s, and returns the same commands again", (_, client, isCluster, address) => {
    const commands = commandsOf(client)
    expect([commands.isCluster, commands.nodeOf("a")]).toEqual([isCluster, address])
    expect(commandsOf(client)).toBe(commands)
  })

  it.each([...SINGLE, ...CLUSTER].map(nameAndMake))(
    "returns the same commands for all stores that share %s, and different commands for every other client",
    (_, make) => {
      const client = make()
      const commands = commandsOf(client)
      expect(commandsOf(client)).toBe(commands)
      expect(commandsOf(make())).not.toBe(commands)
    },
  )

  it.each([...SINGLE.slice(4), ...CLUSTER.slice(2)].map(nameAndMake))(
    "leaves it to the app to connect %s",
    (_, make) => {
      const client = make()
      expect(commandsOf(client).isReady("a")).toBe(false)
      expect("isOpen" in client && client.isOpen).toBe(false)
    },
  )

  it.each([
    ...[...SINGLE.slice(0, 4), ...CLUSTER.slice(0, 2)].map(
      ([name, make]) =>
        [name, make, "status options evalsha sendCommand call connect disconnect on"] as const,
    ),
    ...[...SINGLE.slice(4), ...CLUSTER.slice(2)].map(
      ([name, make]) => [name, make, "isOpen evalSha eval del"] as const,
    ),
    ...SINGLE.slice(4).map(([name, make]) => [name, make, "isReady"] as const),
  ])("rejects an object that looks like %s but lacks a member", (_, make, members) => {
    const client = make()
    for (const member of members.split(" ")) {
      const lacking: unknown = Object.create(client, { [member]: { value: undefined } })
      expect(() => commandsOf(lacking), member).toThrow(/is not a Redis client/)
    }
  })

  it.each([
    ["undefined", undefined, "undefined is not a Redis client"],
    ["null", null, "null is not a Redis client"],
    ["a number", 6379, "6379 is not a Redis client"],
    [
      "a URL as a string",
      "redis://localhost",
      "a URL is not a client: create the client in your app, and pass it",
    ],
    [
      "a URL of another scheme",
      "https://user:secret@redis.example",
      "a URL of the scheme https: (not redis: or rediss:) is not a client: create the client in your app, and pass it",
    ],
    [
      "a URL of a scheme that ends with redis",
      "notredis://localhost",
      "a URL of the scheme notredis: (not redis: or rediss:) is not a client: create the client in your app, and pass it",
    ],
    [
      "a URL of a scheme that begins with redis",
      "redis-sentinel://localhost",
      "a URL of the scheme redis-sentinel: (not redis: or rediss:) is not a client: create the client in your app, and pass it",
    ],
    [
      "an address with a password but no scheme",
      ":secret://@localhost:6379",
      "a URL is not a client: create the client in your app, and pass it",
    ],
    [
      "a URL",
      new URL("redis://localhost"),
      "a URL is not a client: create the client in your app, and pass it",
    ],
    ["options", { host: "localhost", port: 6379 }, "a plain object is not a Redis client"],
    ["another object", new Map(), "an object of Map is not a Redis client"],
    ["an object without a class", Object.create(null), "a plain object is not a Redis client"],
    ["a class", Redis, "the function Redis is not a client: pass the client that it creates"],
    [
      "a nameless function",
      () => createClient(),
      "the function without a name is not a client: pass the client that it creates",
    ],
    ["a promise", Promise.resolve(), "a promise of a client is not a client: await it first"],
    [
      "an ioredis pipeline",
      new Redis({ ...NODE, ...LAZY }).pipeline(),
      "an ioredis pipeline is not a client: pass the client that created it",
    ],
    [
      "a GLIDE client that only reads",
      readingGlide,
      "a Valkey GLIDE client with readOnly cannot be used, because the store writes: leave readOnly out",
    ],
    [
      "a node-redis pool",
      createClientPool({ socket: NODE }),
      "a client pool of node-redis cannot be used, because the store needs a single connection: use createClient()",
    ],
    [
      "a node-redis sentinel",
      createSentinel({ name: "main", sentinelRootNodes: [NODE] }),
      "a sentinel client of node-redis cannot be used, because it may run a call twice: use ioredis with Sentinel",
    ],
    [
      "a client of @upstash/redis",
      new UpstashRedis({ url: "https://redis.example", token: "secret" }),
      "a client of @upstash/redis cannot be used, because it may send a call twice: use redisOverHttp({ url, token })",
    ],
  ])("rejects %s, and reports what was passed and what is accepted", (_, client, message) => {
    const accepted =
      "a client of ioredis or iovalkey (new Redis() or new Cluster()), of node-redis (createClient() or createCluster()), of Valkey GLIDE (GlideClient.createClient() or GlideClusterClient.createClient()), or redisOverHttp({ url, token })"
    try {
      commandsOf(client)
      expect.unreachable("it was taken")
    } catch (error) {
      expect(error).toBeInstanceOf(InvalidOptionError)
      expect((error as InvalidOptionError).problems).toEqual([{ path: "client", message, accepted }])
    }
  })
})
