import { type RedisServer, startRedis } from "../../servers/redis-server.ts"

let server: Promise<RedisServer> | undefined

/** Returns the URL of the Redis server that all blocks of a test file share. Each call empties the server. */
export async function redisUrl(): Promise<string> {
  server ??= startRedis()
  const running = await server
  await running.command("FLUSHALL")
  return `redis://${running.host}:${running.port}`
}

/** Stops the Redis server if it was started. */
export async function stopRedis(): Promise<void> {
  await (await server)?.stop()
  server = undefined
}
