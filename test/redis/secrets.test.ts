import { inspect } from "node:util"
import { createLimiter } from "@sluice/core"
import { type RedisClient, redisStore } from "@sluice/redis"
import fc from "fast-check"
import { Cluster, Redis } from "ioredis"
import { Cluster as Cluster5, Redis as Redis5 } from "ioredis5"
import { createClient, createCluster } from "redis"
import { createClient as createClient5, createCluster as createCluster5 } from "redis5"
import { describe, expect, it } from "vitest"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { examples } from "../test-length.ts"

const { server } = await redisForTests()

/** A client with a user and a password, and a function that closes it. */
interface Opened {
  readonly client: RedisClient
  end(): unknown
}

const ignore = (): void => undefined

function openIoredis(Class: typeof Redis | typeof Redis5, ...given: unknown[]): Opened {
  const client = Reflect.construct(Class, given) as Redis
  client.on("error", ignore)
  return { client, end: () => client.disconnect() }
}

function openIoredisCluster(Class: typeof Cluster | typeof Cluster5, node: unknown): Opened {
  const client = Reflect.construct(Class, [[node], { clusterRetryStrategy: () => null }]) as Cluster
  client.on("error", ignore)
  return { client, end: () => client.disconnect() }
}

interface NodeRedis {
  on(event: "error", listener: () => void): unknown
  connect(): Promise<unknown>
  destroy(): void
}

function openNodeRedis(made: unknown): Opened {
  const client = made as NodeRedis
  client.on("error", ignore)
  client.connect().catch(ignore)
  const end = (): void => {
    try {
      client.destroy()
    } catch {
      // The client never connected.
    }
  }
  return { client: made as RedisClient, end }
}

/** A user and a password, in plain form and as part of a URL. */
interface Login {
  readonly user: string
  readonly password: string
  readonly inUrl: string
}

/**
 * Ways to pass a login to a client. Some are correct, and others are URLs that the library mistakes for a host or a
 * path.
 */
const WAYS: readonly (readonly [string, (login: Login) => Opened])[] = [
  ...[Redis, Redis5].flatMap((Class, index) => {
    const lib = `ioredis ${index === 0 ? 6 : 5}`
    return ["http:", "postgres:", "redis+tls:", "redis:"].map(
      (protocol): readonly [string, (login: Login) => Opened] => [
        `${lib} with ${protocol}//`,
        ({ inUrl }) => openIoredis(Class, `${protocol}//${inUrl}@127.0.0.1:1`),
      ],
    )
  }),
  ["ioredis with a URL as path", ({ inUrl }) => openIoredis(Redis, { path: `redis://${inUrl}@127.0.0.1:1` })],
  [
    "ioredis with a password that Redis does not accept",
    ({ user, password }) => openIoredis(Redis, { port: server.port, username: user, password }),
  ],
  ["a cluster of ioredis 6", ({ inUrl }) => openIoredisCluster(Cluster, `http://${inUrl}@127.0.0.1:1`)],
  ["a cluster of ioredis 5", ({ inUrl }) => openIoredisCluster(Cluster5, `http://${inUrl}@127.0.0.1:1`)],
  [
    "a cluster of ioredis with a URL as path",
    ({ inUrl }) => openIoredisCluster(Cluster, { path: `//${inUrl}@127.0.0.1:1` }),
  ],
  ["node-redis 6", ({ inUrl }) => openNodeRedis(createClient({ url: `redis://${inUrl}@127.0.0.1:1` }))],
  ["node-redis 5", ({ inUrl }) => openNodeRedis(createClient5({ url: `redis://${inUrl}@127.0.0.1:1` }))],
  [
    "node-redis with a URL as path",
    ({ inUrl }) => openNodeRedis(createClient({ socket: { path: `//${inUrl}@127.0.0.1:1`, tls: false } })),
  ],
  [
    "node-redis 5 with a URL as path",
    ({ inUrl }) => openNodeRedis(createClient5({ socket: { path: `//${inUrl}@127.0.0.1:1`, tls: false } })),
  ],
  [
    "node-redis with a password that Redis does not accept",
    ({ user, password }) =>
      openNodeRedis(createClient({ username: user, password, socket: { port: server.port } })),
  ],
  [
    "a cluster of node-redis 6",
    ({ inUrl }) => openNodeRedis(createCluster({ rootNodes: [{ url: `redis://${inUrl}@127.0.0.1:1` }] })),
  ],
  [
    "a cluster of node-redis 5 with a URL as path",
    ({ inUrl }) => {
      const socket = { path: `//${inUrl}@127.0.0.1:1`, tls: false } as object
      return openNodeRedis(createCluster5({ rootNodes: [{ socket }] }))
    },
  ],
]

/**
 * Generates a user or a password that cannot appear by chance. The result contains characters that a URL must escape,
 * or may leave unescaped.
 */
const word = fc
  .string({ unit: fc.constantFrom(..."abXY09:@/#?% &=+'._-"), maxLength: 12 })
  .map((text) => `S3cr${text}eT`)
const login: fc.Arbitrary<Login> = fc.record({ user: word, password: word }).map((given) => ({
  ...given,
  inUrl: `${encodeURIComponent(given.user)}:${encodeURIComponent(given.password)}`,
}))

/** Returns everything that a limiter logs, emits and rejects with while its client cannot be used. */
async function saidWith({ client, end }: Opened): Promise<string> {
  const said: unknown[] = []
  const logger = {
    warn: (...line: unknown[]) => said.push(line),
    error: (...line: unknown[]) => said.push(line),
  }
  const limiter = createLimiter({
    limit: 5,
    window: "1 minute",
    service: "shop",
    store: redisStore({ client }),
    storeTimeoutMs: 20,
    logger,
  })
  for (const event of ["store-error", "degraded", "warning"] as const) {
    limiter.on(event, (told: unknown) => said.push(told))
  }
  try {
    const request = { remoteAddress: "192.0.2.1" }
    for (let i = 0; i < 3; i++) said.push(await limiter.decide(request))
    await limiter.reset(request).catch((error: unknown) => said.push(error, JSON.stringify(error)))
    said.push(limiter.status, await limiter.takeUpTo(request, 2))
  } finally {
    await limiter.close()
    end()
  }
  return said.map((each) => inspect(each, { depth: null, showHidden: false })).join("\n")
}

describe("a user name and password never appear in a log line, event or error", () => {
  it.each(WAYS)("%s", async (_way, open) => {
    await fc.assert(
      fc.asyncProperty(login, async (given) => {
        const said = await saidWith(open(given))
        expect(said).toContain("SLUICE_DEGRADED")
        for (const secret of [given.user, given.password, "S3cr"]) expect(said).not.toContain(secret)
      }),
      { numRuns: examples(1, 5) },
    )
  })
})
