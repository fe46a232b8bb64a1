import { once } from "node:events"
import { Redis } from "ioredis"
import type { AppSetup } from "../app.ts"

/** What pages of peers set on it. */
interface ClientOptions {
  readonly connectTimeout?: number
  readonly enableOfflineQueue?: boolean
  readonly maxRetriesPerRequest?: number
}

/**
 * The client of an app, by ioredis; undefined where counters are in memory. A Redis that is up is waited for, so that no
 * app is told apart by how it connects.
 */
export async function connectRedis(
  { redis }: AppSetup,
  options: ClientOptions = {},
): Promise<Redis | undefined> {
  if (redis === undefined) return undefined
  const client = new Redis({ host: "127.0.0.1", port: redis.port, ...options })
  // As every app does that logs them: without a listener ioredis prints each failed attempt.
  client.on("error", () => {})
  if (redis.isUp && client.status !== "ready") await once(client, "ready")
  return client
}
