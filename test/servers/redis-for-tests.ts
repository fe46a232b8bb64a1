import { Redis } from "ioredis"
import { afterAll } from "vitest"
import { type RedisOptions, type RedisServer, startRedis } from "./redis-server.ts"

/** A Redis server that runs during the tests of a file. */
export interface RedisForTests {
  readonly server: RedisServer
  /** A client of the server, which connects with its first command. */
  readonly client: Redis
}

/** Starts a server for all tests of a file or a group. The server and the client end after these tests. */
export async function redisForTests(options?: RedisOptions): Promise<RedisForTests> {
  const server = await startRedis(options)
  const client = new Redis(server.port, server.host, { lazyConnect: true })
  afterAll(async () => {
    client.disconnect()
    await server.stop()
  })
  return { server, client }
}
