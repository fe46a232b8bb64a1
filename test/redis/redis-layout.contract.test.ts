import { storeContract } from "@sluice/contracts"
import { Redis } from "ioredis"
import { afterAll, beforeAll, describe } from "vitest"
import { RedisStore } from "../../packages/redis/src/redis-store.ts"
import { runContract } from "../contracts/run-contract.ts"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"
import { everyNth } from "../test-length.ts"
import { emptyOne } from "./contract-on.ts"
import { KeysOnAClock } from "./keys-on-a-clock.ts"

describe("in the layout for the server's own clock", () => {
  let server: RedisServer
  let client: Redis
  beforeAll(async () => {
    server = await startRedis()
    client = new Redis(server.port, server.host)
  })
  afterAll(async () => {
    client?.disconnect()
    await server?.stop()
  })

  // Stores without an app's clock use this layout, which consists of integers and hashes. In these tests, the keys
  // expire by the test clock.
  const behaviours = storeContract({
    create: (clock) => {
      const { expiring: commands } = new KeysOnAClock(client, clock)
      return new RedisStore({ commands, clock, isWide: false, ...emptyOne() })
    },
  })
  // Other tests compare this layout with the memory store: differential.test.ts, forgetting.test.ts.
  runContract("the Redis store", everyNth(3, behaviours))
})
