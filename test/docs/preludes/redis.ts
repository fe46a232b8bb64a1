import { type RedisServer, startRedis } from "../../servers/redis-server.ts"

let server: Promise<RedisServer> | undefined

/** Returns the URL of one Redis for all blocks of a test file. The Redis is emptied each time. */
export async function redisUrl(): Promise<string> {
  server ??= startRedis()
  const running = await server
  await running.command("FLUSHALL")
  return `redis://${running.host}:${running.port}`
}

/** Stops the Redis if it was started. */
export async function stopRedis(): Promise<void> {
  await (await server)?.stop()
  server = undefined
}
