import { Redis } from "ioredis"
import { afterAll, beforeAll, beforeEach } from "vitest"
import { type RedisServer, startRedis } from "../../servers/redis-server.ts"

/** A Redis for one test file, and its client. */
export interface Running {
  server: RedisServer
  client: Redis
}

/** Starts a Redis for the tests of this file and empties it before each test. It is available once the tests run. */
export function withRedis(): Running {
  const running = {} as Running
  beforeAll(async () => {
    running.server = await startRedis()
    running.client = new Redis(running.server.port, running.server.host)
  })
  beforeEach(() => running.server.command("FLUSHALL"))
  afterAll(async () => {
    running.client?.disconnect()
    await running.server?.stop()
  })
  return running
}

/** Returns a client that has been closed, so that each command fails immediately. */
export async function closedClient({ server }: Running): Promise<Redis> {
  const client = new Redis(server.port, server.host)
  await client.quit()
  return client
}
