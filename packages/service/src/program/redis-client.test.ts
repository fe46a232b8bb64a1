import type { Cluster } from "ioredis"
import { expect, it } from "vitest"
import { createRedisClient } from "./redis-client.ts"

it("asks every node of a cluster, by TLS too, as the URLs say", async () => {
  const urls = ["rediss://app:p%40ss@[::1]:7000", "rediss://app:p%40ss@redis.example"]
  const client = (await createRedisClient({ urls, isCluster: true, prefix: "" })) as Cluster
  client.disconnect()
  expect(client.options.redisOptions).toEqual({
    username: "app",
    password: "p@ss",
    tls: {},
    connectTimeout: 3_000,
  })
})

it("asks for no more than the URLs say", async () => {
  const client = (await createRedisClient({
    urls: ["redis://redis"],
    isCluster: true,
    prefix: "",
  })) as Cluster
  client.disconnect()
  expect(client.options.redisOptions).toEqual({ connectTimeout: 3_000 })
})
