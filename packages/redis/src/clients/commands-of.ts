import { InvalidOptionError } from "@sluice/core"
import { textOf } from "@sluice/core/kit"
import { makeStringsQuick } from "@sluice/core/stores"
import type { RedisCommands } from "../commands.ts"
import { type GlideLike, glideClusterCommands, glideCommands, isReadOnly } from "./glide.ts"
import { type IoredisClusterLike, type IoredisLike, ioredisCommands } from "./ioredis.ts"
import { ioredisClusterCommands } from "./ioredis-cluster.ts"
import { type NodeRedisLike, nodeRedisCommands } from "./node-redis.ts"
import { type NodeRedisClusterLike, nodeRedisClusterCommands } from "./node-redis-cluster.ts"
import { type RedisOverHttp, redisOverHttpCommands } from "./redis-over-http.ts"

export type { GlideLike, IoredisClusterLike, IoredisLike, NodeRedisClusterLike, NodeRedisLike }

/**
 * A client that the store can use: `Redis` or `Cluster` of ioredis 5 or 6 or of iovalkey, a client or cluster of
 * node-redis 5 or 6, `GlideClient` or `GlideClusterClient` of Valkey GLIDE 2, or the client that `redisOverHttp` creates.
 */
export type RedisClient =
  | GlideLike
  | IoredisLike
  | IoredisClusterLike
  | NodeRedisLike
  | NodeRedisClusterLike
  | RedisOverHttp

const ACCEPTED =
  "a client of ioredis or iovalkey (new Redis() or new Cluster()), of node-redis (createClient() or createCluster()), of Valkey GLIDE (GlideClient.createClient() or GlideClusterClient.createClient()), or redisOverHttp({ url, token })"

/** The commands of each client. Stores that share a client also share the state of its connections. */
const ports = new WeakMap<object, RedisCommands>()

/**
 * Returns the commands of a client. Recognizes the client by its methods, not by its class, because the app may have
 * its own copy of the library. Throws {@link InvalidOptionError} for anything else. Opens no connection, but
 * `isReady` connects an ioredis client that has `lazyConnect`. The app must handle the client's errors and close the
 * client.
 */
export function commandsOf(client: unknown): RedisCommands {
  const refused = unusable(client)
  const commands = refused === undefined ? (ports.get(client as object) ?? portOn(client)) : undefined
  if (commands === undefined) {
    const message = refused ?? `${nameOf(client)} is not a Redis client`
    throw new InvalidOptionError([{ path: "client", message, accepted: ACCEPTED }])
  }
  ports.set(client as object, commands)
  makeStringsQuick()
  return commands
}

function portOn(client: unknown): RedisCommands | undefined {
  if (isIoredis(client)) {
    return isIoredisCluster(client) ? ioredisClusterCommands(client) : ioredisCommands(client)
  }
  if (isNodeRedisCluster(client)) return nodeRedisClusterCommands(client)
  if (isNodeRedis(client)) return nodeRedisCommands(client)
  if (isRedisOverHttp(client)) return redisOverHttpCommands(client)
  if (isGlide(client)) return isGlideCluster(client) ? glideClusterCommands(client) : glideCommands(client)
  return undefined
}

/**
 * Returns the reason why the store cannot use a value that resembles a client, or from which the app can create a
 * client. Returns undefined for any other value.
 */
function unusable(client: unknown): string | undefined {
  if (typeof client === "string" || client instanceof URL) {
    const [, scheme = "redis"] = /^([a-z][\w+.-]*):\/\//i.exec(String(client)) ?? []
    const what = /^rediss?$/i.test(scheme)
      ? "a URL"
      : `a URL of the scheme ${scheme}: (not redis: or rediss:)`
    return `${what} is not a client: create the client in your app, and pass it`
  }
  if (typeof client === "function")
    return `the function ${client.name || "without a name"} is not a client: pass the client that it creates`
  if (has(client, "then")) return "a promise of a client is not a client: await it first"
  if (isObject(client) && client.isPipeline === true) {
    return "an ioredis pipeline is not a client: pass the client that created it"
  }
  if (has(client, "evalsha", "createScript")) {
    return "a client of @upstash/redis cannot be used, because it may send a call twice: use redisOverHttp({ url, token })"
  }
  if (has(client, "evalSha") && has(client, "acquire")) {
    // This client resends a command if the connection is lost before the reply, so Redis would count the command
    // twice.
    return "a sentinel client of node-redis cannot be used, because it may run a call twice: use ioredis with Sentinel"
  }
  if (has(client, "evalSha") && has(client, "execute")) {
    return "a client pool of node-redis cannot be used, because the store needs a single connection: use createClient()"
  }
  if (isGlide(client) && isReadOnly(client)) {
    return "a Valkey GLIDE client with readOnly cannot be used, because the store writes: leave readOnly out"
  }
  return undefined
}

function isIoredis(client: unknown): client is IoredisLike | IoredisClusterLike {
  return (
    isObject(client) &&
    typeof client.status === "string" &&
    isObject(client.options) &&
    has(client, "evalsha", "sendCommand", "call", "connect", "disconnect", "on")
  )
}

function isIoredisCluster(client: IoredisLike | IoredisClusterLike): client is IoredisClusterLike {
  return has(client, "nodes", "refreshSlotsCache")
}

function isNodeRedisCluster(client: unknown): client is NodeRedisClusterLike {
  return hasNodeRedisCalls(client) && Array.isArray(client.slots)
}

function isNodeRedis(client: unknown): client is NodeRedisLike {
  return hasNodeRedisCalls(client) && typeof client.isReady === "boolean"
}

function isRedisOverHttp(client: unknown): client is RedisOverHttp {
  return isObject(client) && typeof client.host === "string" && has(client, "command")
}

function hasNodeRedisCalls(client: unknown): client is Record<string, unknown> {
  return isObject(client) && typeof client.isOpen === "boolean" && has(client, "evalSha", "eval", "del")
}

function isGlide(client: unknown): client is GlideLike {
  return has(client, "customCommand", "getStatistics", "close")
}

function isGlideCluster(client: GlideLike): boolean {
  return has(client, "invokeScriptWithRoute")
}

function has(value: unknown, ...methods: readonly string[]): boolean {
  return isObject(value) && methods.every((method) => typeof value[method] === "function")
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null
}

function nameOf(value: unknown): string {
  if (!isObject(value)) return textOf(value)
  const made = value.constructor
  const name = typeof made === "function" ? made.name : ""
  return name === "" || name === "Object" ? "a plain object" : `an object of ${name}`
}
