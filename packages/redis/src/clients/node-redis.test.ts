import { expect, it } from "vitest"
import { type NodeRedisLike, nodeRedisCommands } from "./node-redis.ts"
import { LikeNodeRedis } from "./testing/node-redis-like.ts"

it("a client of node-redis is ready if its isReady is true", () => {
  const client = new LikeNodeRedis()
  const commands = nodeRedisCommands(client)
  expect([commands.isReady("a"), commands.nodeOf("a"), commands.isCluster]).toEqual([false, "", false])
  client.isReady = true
  expect(commands.isReady("a")).toBe(true)
})

it.each<[NodeRedisLike["options"], string]>([
  [{ socket: { host: "10.0.0.1", port: 6380 } }, "10.0.0.1:6380"],
  [{ socket: { host: "10.0.0.1" } }, "10.0.0.1:6379"],
  [{ socket: { path: "/run/redis.sock" } }, "/run/redis.sock"],
  [{}, "localhost:6379"],
  [undefined, ""],
])("a client of node-redis with %j is named %j", (options, name) => {
  expect(nodeRedisCommands(Object.assign(new LikeNodeRedis(), { options })).nodeOf("a")).toBe(name)
})
