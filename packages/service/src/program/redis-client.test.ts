import type { Cluster } from "ioredis"
import { expect, it } from "vitest"
import { createRedisClient } from "./redis-client.ts"

it("the Redis client of the service connects to every node with the user, password and TLS of the URLs", async () => {
  const urls = ["rediss://app:p%40ss@[::1]:7000", "rediss://app:p%40ss@redis.example"]
  const client = (await createRedisClient(urls, true)) as Cluster
  client.disconnect()
  expect(client.options.redisOptions).toEqual({
    username: "app",
    password: "p@ss",
    tls: {},
    connectTimeout: 3_000,
  })
})

it("the Redis client of the service uses no user, password or TLS that the URLs do not contain", async () => {
  const client = (await createRedisClient(["redis://redis"], true)) as Cluster
  client.disconnect()
  expect(client.options.redisOptions).toEqual({ connectTimeout: 3_000 })
})
