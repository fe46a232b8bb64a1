import { StoreUnavailableError } from "@sluice/core"
import { beforeDeadline, sentenceOf } from "@sluice/core/kit"
import type { Cluster, Redis, RedisOptions } from "ioredis"
import { UsageError } from "../usage-error.ts"

/** Longest wait for a connection, and afterwards for the reply to a command. */
export const REPLY_MS = 5_000
/** Wait before a lost connection is opened again. */
const RECONNECT_MS = 500

/**
 * Connects to the Redis server at a URL, or to the cluster that it is part of. Several URLs, separated by commas, are
 * nodes of a cluster. `source` names the option or variable that contains the URL. Throws UsageError for an invalid URL.
 * Rejects with StoreUnavailableError if Redis cannot be used. Loads ioredis only when called. `signal` closes the
 * connection, also while it is being opened.
 */
export async function connectRedis(
  url: string,
  source: string,
  signal?: AbortSignal,
): Promise<Redis | Cluster> {
  // Split only before a URL, because a password may contain a comma.
  const urls = url.split(/\s*,\s*(?=rediss?:\/\/)/)
  if (!urls.every(isRedisUrl)) {
    // Do not show the value, because it may contain a password anywhere.
    throw new UsageError(
      `${source} is not a valid URL of Redis: give one such as redis://localhost:6379/0, or rediss:// with TLS; write %25 for each % of a password`,
    )
  }
  const [first = "", ...others] = urls
  const { Cluster, Redis } = await import("ioredis")
  const times = { connectTimeout: REPLY_MS, commandTimeout: REPLY_MS }
  let isConnected = false
  const retryStrategy = (): number | null => (isConnected ? RECONNECT_MS : null)
  let client: Redis | Cluster = new Redis(first, { ...times, lazyConnect: true, retryStrategy })
  if (others.length > 0 || (await isOfCluster(client, first, signal))) {
    client.disconnect()
    const redisOptions = { ...times, ...accessOf(first) }
    client = new Cluster(urls.map(nodeOf), {
      lazyConnect: true,
      clusterRetryStrategy: retryStrategy,
      redisOptions,
    })
    await connect(client, first, signal)
  }
  isConnected = true
  return client
}

/** Closes a connection. A second `disconnect` of ioredis would keep the process alive for two seconds. */
export function disconnect(client: Redis | Cluster): void {
  if (client.status !== "end") client.disconnect()
}

/** Connects a client. Resolves with true if its server is a node of a cluster. */
async function isOfCluster(client: Redis, url: string, signal?: AbortSignal): Promise<boolean> {
  await connect(client, url, signal)
  // The user may not be permitted to ask.
  const info = await client.info("cluster").catch(() => "")
  return /^cluster_enabled:1/m.test(info)
}

/** Connects a client. Rejects with StoreUnavailableError, also if the server refuses the database of the URL. */
async function connect(client: Redis | Cluster, url: string, signal?: AbortSignal): Promise<void> {
  signal?.addEventListener("abort", () => disconnect(client))
  let problem: Error | undefined
  let nodeProblem: Error | undefined
  client.on("error", (error: Error) => {
    problem = error
  })
  client.on("node error", (error: Error) => {
    nodeProblem = error
  })
  const late = () => Promise.reject(new Error(`It did not respond within ${REPLY_MS / 1_000} seconds`))
  await beforeDeadline(client.connect(), REPLY_MS, late).catch((error: Error) => {
    problem = nodeProblem ?? problem ?? error
  })
  if (problem === undefined) return
  disconnect(client)
  // An AggregateError contains one error for each address, and has an empty message.
  const reason = sentenceOf(problem.message || String((problem as NodeJS.ErrnoException).code))
  throw new StoreUnavailableError(
    `Redis at ${new URL(url).host} cannot be used: ${reason} Check REDIS_URL or --redis, then run the command again.`,
    { outcome: "not-applied", cause: problem },
  )
}

function isRedisUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, username, password, hostname, pathname, searchParams } = new URL(text)
  // For a database that is not a number, ioredis would use database 0.
  const databases = [pathname.slice(1), searchParams.get("db") ?? ""]
  return (
    /^rediss?:$/.test(protocol) &&
    hostname !== "" &&
    databases.every((each) => /^\d*$/.test(each)) &&
    [username, password].every(isDecodable)
  )
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

function nodeOf(url: string): { readonly host: string; readonly port: number } {
  const { hostname, port } = new URL(url)
  return { host: hostname.replace(/^\[(.*)\]$/, "$1"), port: port === "" ? 6_379 : Number(port) }
}

/** Returns the credentials and the TLS options for all nodes, because nodes that are discovered later have no URL. */
function accessOf(url: string): Pick<RedisOptions, "username" | "password" | "tls"> {
  const { protocol, username, password } = new URL(url)
  return {
    ...(username !== "" && { username: decodeURIComponent(username) }),
    ...(password !== "" && { password: decodeURIComponent(password) }),
    ...(protocol === "rediss:" && { tls: {} }),
  }
}
