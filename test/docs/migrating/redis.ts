import { Redis } from "ioredis"
import { afterAll, beforeAll, beforeEach } from "vitest"
import { type RedisServer, startRedis } from "../../servers/redis-server.ts"

/** A Redis of the test file's own, and a client of it. */
export interface Running {
  server: RedisServer
  client: Redis
}

/** Starts one for the tests of this file, which each find it empty. It is there once they run. */
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

/** A client that has been closed: each command fails at once. */
export async function closedClient({ server }: Running): Promise<Redis> {
  const client = new Redis(server.port, server.host)
  await client.quit()
  return client
}
