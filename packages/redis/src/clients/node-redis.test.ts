import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { type NodeRedisLike, nodeRedisCommands } from "./node-redis.ts"
import { LikeNodeRedis } from "./testing/node-redis-like.ts"

it("a node-redis client is ready if its `isReady` is true", () => {
  const client = new LikeNodeRedis()
  const commands = nodeRedisCommands(client)
  expect([commands.isReady("a"), commands.nodeOf("a"), commands.isCluster]).toEqual([false, "", false])
  client.isReady = true
  expect(commands.isReady("a")).toBe(true)
})

it("a node-redis client is closed if its `isOpen` is false", () => {
  const client = new LikeNodeRedis()
  const commands = nodeRedisCommands(client)
  expect(commands.isOpen()).toBe(true)
  client.isOpen = false
  expect(commands.isOpen()).toBe(false)
})

it.each<[NodeRedisLike["options"], string]>([
  [{ socket: { host: "10.0.0.1", port: 6380 } }, "10.0.0.1:6380"],
  [{ socket: { host: "10.0.0.1" } }, "10.0.0.1:6379"],
  [{ socket: { path: "/run/redis.sock" } }, "/run/redis.sock"],
  [{}, "localhost:6379"],
  [undefined, ""],
])("a node-redis client with the options %j names its node %j", (options, name) => {
  expect(nodeRedisCommands(Object.assign(new LikeNodeRedis(), { options })).nodeOf("a")).toBe(name)
})

describe("a node-redis client whose server has become a replica", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }))
  afterEach(() => void vi.useRealTimers())

  /** Creates a connected client with a listener for its errors, and counts its reconnects. */
  function connected(more: Partial<NodeRedisLike> = {}) {
    const client = Object.assign(new LikeNodeRedis(), { isReady: true }, more)
    client.on("error", () => undefined)
    const { isReady, reconnect } = nodeRedisCommands(client)
    const quits = () =>
      client.asked.filter((call) => JSON.stringify(call) === '["sendCommand",["QUIT"]]').length
    return { client, isReady: () => isReady("a"), reconnect: () => reconnect("a"), quits }
  }

  it.each<NodeRedisLike["options"]>([
    undefined,
    {},
    { socket: {} },
    { socket: { reconnectStrategy: () => 10 } },
  ])("sends QUIT, so that it reconnects by itself, with options %j", (options) => {
    const { reconnect, quits } = connected({ options })
    reconnect()
    expect(quits()).toBe(1)
  })

  it.each<[string, Partial<NodeRedisLike>]>([
    ["has no connection", { isReady: false }],
    ["does not reconnect by itself", { options: { socket: { reconnectStrategy: false } } }],
    ["has no listener for errors, so the lost connection would end the process", { listenerCount: () => 0 }],
    ["cannot count its listeners", { listenerCount: undefined as never }],
    ["cannot send the command", { sendCommand: undefined as never }],
  ])("does not send QUIT if it %s", (_, more) => {
    const { client, reconnect } = connected(more)
    reconnect()
    expect(client.asked).toEqual([])
  })

  it("is not ready until it has reconnected, or for a second if it does not reconnect", () => {
    const { client, isReady, reconnect } = connected()
    expect(isReady()).toBe(true)
    reconnect()
    expect(isReady()).toBe(false)
    client.socketEpoch++
    expect(isReady()).toBe(true)
    vi.advanceTimersByTime(1_000)
    reconnect()
    vi.advanceTimersByTime(999)
    expect(isReady()).toBe(false)
    vi.advanceTimersByTime(1)
    expect(isReady()).toBe(true)
  })

  it("sends QUIT at most once a second", () => {
    const { client, reconnect, quits } = connected()
    reconnect()
    client.socketEpoch++
    vi.advanceTimersByTime(999)
    reconnect()
    expect(quits()).toBe(1)
    vi.advanceTimersByTime(1)
    reconnect()
    expect(quits()).toBe(2)
  })
})
