import type { Cluster, Redis, RedisOptions } from "ioredis"
import type { RedisSettings } from "./settings.ts"

export type RedisClient = Redis | Cluster

const CONNECT_MS = 3_000

/** A client of one server, or of a cluster that is found by the nodes that the settings name. ioredis is loaded then. */
export async function createRedisClient({ urls, isCluster }: RedisSettings): Promise<RedisClient> {
  const ioredis = await import("ioredis")
  const [first] = urls as [string]
  if (!isCluster) return new ioredis.Redis(first, { connectTimeout: CONNECT_MS })
  const nodes = urls.map((url) => {
    const { hostname, port } = new URL(url)
    return { host: bare(hostname), port: port === "" ? 6_379 : Number(port) }
  })
  return new ioredis.Cluster(nodes, { redisOptions: { ...accessOf(first), connectTimeout: CONNECT_MS } })
}

/** Every server that has to answer for all keys to be counted. */
export function serversOf(client: RedisClient): readonly Redis[] {
  return "nodes" in client ? client.nodes("master") : [client]
}

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
