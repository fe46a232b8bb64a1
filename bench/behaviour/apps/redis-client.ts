import { once } from "node:events"
import { Redis } from "ioredis"
import type { AppSetup } from "../app.ts"

/** The client options that the documentation of a peer recommends. */
interface ClientOptions {
  readonly connectTimeout?: number
  readonly enableOfflineQueue?: boolean
  readonly maxRetriesPerRequest?: number
}

/**
 * Returns the ioredis client of an app, or undefined if its counters are in memory. If Redis is up, waits until the
 * client has connected, so that different connection times do not affect the result.
 */
export async function connectRedis(
  { redis }: AppSetup,
  options: ClientOptions = {},
): Promise<Redis | undefined> {
  if (redis === undefined) return undefined
  const client = new Redis({ host: "127.0.0.1", port: redis.port, ...options })
  // Without a listener ioredis prints each failed attempt. Apps that log errors have such a listener.
  client.on("error", () => {})
  if (redis.isUp && client.status !== "ready") await once(client, "ready")
  return client
}
