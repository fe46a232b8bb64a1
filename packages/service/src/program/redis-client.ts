import type { Cluster, Redis, RedisOptions } from "ioredis"
import type { RedisSettings } from "./settings.ts"

export type ServiceRedis = Redis | Cluster

const CONNECT_MS = 3_000

/** A client of one server, or of a cluster that is found by the nodes that the settings name. ioredis is loaded then. */
export async function createRedisClient({ urls, isCluster }: RedisSettings): Promise<ServiceRedis> {
  const ioredis = await import("ioredis")
  const [first] = urls as [string]
  if (!isCluster) return new ioredis.Redis(first, { connectTimeout: CONNECT_MS })
  const nodes = urls.map((url) => {
    const { hostname, port } = new URL(url)
    return { host: bare(hostname), port: port === "" ? 6_379 : Number(port) }
  })
  return new ioredis.Cluster(nodes, { redisOptions: { ...accessOf(first), connectTimeout: CONNECT_MS } })
}

/** Rejects or yields false unless every server answers that has to for all keys to be counted. */
export async function answers(client: ServiceRedis): Promise<boolean> {
  if (!("nodes" in client)) return (await client.ping()) === "PONG"
  // Nodes that are gone are not among them, and those that are left may answer PING and refuse all else.
  const views = await Promise.all(client.nodes("master").map((node) => node.cluster("INFO")))
  return views.length > 0 && views.every((view) => ALL_SLOTS.test(String(view)))
}

/** What a node of a cluster says in which somebody serves every key. */
const ALL_SLOTS = /^cluster_slots_ok:16384\s*$/m

/** What every node asks for: those that are found later have no URL. */
function accessOf(url: string): Pick<RedisOptions, "username" | "password" | "tls"> {
  const { protocol, username, password } = new URL(url)
  return {
    ...(username === "" ? {} : { username: decodeURIComponent(username) }),
    ...(password === "" ? {} : { password: decodeURIComponent(password) }),
    ...(protocol === "rediss:" ? { tls: {} } : {}),
  }
}

/** An IPv6 address without the brackets of a URL. */
function bare(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, "$1")
}
