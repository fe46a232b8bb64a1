import type { Cluster, Redis, RedisOptions } from "ioredis"

export type ServiceRedis = Redis | Cluster

const CONNECT_MS = 3_000

/**
 * Creates a client for one server, or for a cluster of which `urls` lists some nodes. Loads ioredis only when called.
 */
export async function createRedisClient(urls: readonly string[], isCluster: boolean): Promise<ServiceRedis> {
  const ioredis = await import("ioredis")
  const [first] = urls as readonly [string]
  if (!isCluster) return new ioredis.Redis(first, { connectTimeout: CONNECT_MS })
  const nodes = urls.map((url) => {
    const { hostname, port } = new URL(url)
    return { host: bare(hostname), port: port === "" ? 6_379 : Number(port) }
  })
  return new ioredis.Cluster(nodes, { redisOptions: { ...accessOf(first), connectTimeout: CONNECT_MS } })
}

/**
 * Resolves with true if every server that is needed to count all keys responds. Otherwise rejects or resolves with
 * false.
 */
export async function answers(client: ServiceRedis): Promise<boolean> {
  if (!("nodes" in client)) return (await client.ping()) === "PONG"
  // Do not use PING, because the list omits nodes that have left, and the remaining nodes may respond to PING but
  // refuse every other command.
  const views = await Promise.all(client.nodes("master").map((node) => node.cluster("INFO")))
  return views.length > 0 && views.every((view) => ALL_SLOTS.test(String(view)))
}

/** The line in CLUSTER INFO which means that all slots are served. */
const ALL_SLOTS = /^cluster_slots_ok:16384\s*$/m

/**
 * Returns the credentials and TLS options for every node. The first URL provides these options, because nodes that
 * are discovered later have no URL.
 */
function accessOf(url: string): Pick<RedisOptions, "username" | "password" | "tls"> {
  const { protocol, username, password } = new URL(url)
  return {
    ...(username === "" ? {} : { username: decodeURIComponent(username) }),
    ...(password === "" ? {} : { password: decodeURIComponent(password) }),
    ...(protocol === "rediss:" ? { tls: {} } : {}),
  }
}

/** Returns an IPv6 address without the brackets of a URL. */
function bare(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, "$1")
}
