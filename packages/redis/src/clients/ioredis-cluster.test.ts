import { AsyncLocalStorage } from "node:async_hooks"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { ioredisClusterCommands } from "./ioredis-cluster.ts"
import { keySlot } from "./key-slot.ts"
import { LikeCluster, LikeRedis } from "./testing/ioredis-like.ts"

describe("an ioredis cluster", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }))
  afterEach(() => void vi.useRealTimers())

  /** Creates a connected cluster. Its first node serves key a, its second node key b. */
  function connected(keyPrefix?: unknown, prefix = "") {
    const client = new LikeCluster(keyPrefix)
    const first = new LikeRedis({ host: "10.0.0.1", port: 7001 })
    const second = new LikeRedis({ host: "10.0.0.1", port: 7002 })
    client.primaries.push(first, second)
    client.slots[keySlot(`${prefix}a`)] = ["10.0.0.1:7001", "10.0.0.9:7009"]
    client.slots[keySlot(`${prefix}b`)] = ["10.0.0.1:7002"]
    for (const each of [client, first, second]) each.status = "ready"
    const commands = ioredisClusterCommands(client)
    client.lists = 0
    return { client, first, second, commands }
  }

  it("is ready for a key while the client and the primary of the key's slot are ready", () => {
    const { client, first, commands } = connected()
    expect([commands.isReady("a"), commands.isReady("b")]).toEqual([true, true])
    vi.advanceTimersByTime(5_000)
    expect(commands.isReady("a")).toBe(true)
    first.status = "reconnecting"
    expect([commands.isReady("a"), commands.isReady("b")]).toEqual([false, true])
    first.status = "ready"
    expect(commands.isReady("a")).toBe(true)
    for (const status of ["connecting", "connect", "reconnecting", "disconnecting", "close", "end"]) {
      client.status = status
      expect([status, commands.isReady("a"), commands.isOpen()]).toEqual([status, false, status !== "end"])
    }
    expect([client.connects, first.connects]).toEqual([0, 0])
  })

  it("is connected only once if its status is `wait`", () => {
    const { client, commands } = connected()
    client.status = "wait"
    expect(commands.isReady("a")).toBe(false)
    expect(client.status).toBe("connecting")
    expect(commands.isReady("a")).toBe(false)
    expect(client.connects).toBe(1)
    expect(client.refreshes).toBe(0)
  })

  it("connects a node whose status is `wait`, because no command is sent to it before it is ready", () => {
    const { client, first, commands } = connected()
    first.status = "wait"
    expect(commands.isReady("a")).toBe(false)
    expect([first.status, client.refreshes]).toEqual(["connecting", 0])
    expect(commands.isReady("a")).toBe(false)
    first.status = "ready"
    expect([commands.isReady("a"), first.connects]).toEqual([true, 1])
  })

  it("does not connect a node that ioredis removed before the node was connected", () => {
    const { client, first, commands } = connected()
    commands.isReady("a")
    first.status = "wait"
    client.primaries.shift()
    for (let i = 0; i < 2; i++) expect(commands.isReady("a")).toBe(false)
    expect([first.connects, client.refreshes]).toEqual([0, 1])
  })

  it("refreshes its slots after a node has responded as a replica, although the node still looks ready", () => {
    const { client, commands } = connected()
    for (let i = 0; i < 2; i++) commands.reconnect("a")
    expect([commands.isReady("a"), client.refreshes]).toEqual([true, 1])
  })

  it("lists its nodes only when a node's connection has ended or a node is unknown, not for every call", () => {
    const { client, first, commands } = connected()
    for (let i = 0; i < 3; i++) commands.isReady("a")
    commands.isReady("b")
    expect(client.lists).toBe(1)
    first.status = "end"
    const instead = new LikeRedis({ host: "10.0.0.1", port: 7001 })
    instead.status = "ready"
    client.primaries[0] = instead
    expect(commands.isReady("a")).toBe(true)
    expect([commands.isReady("a"), commands.isReady("b")]).toEqual([true, true])
    expect(client.lists).toBe(2)
    // A node whose connection has ended permanently is not used again.
    client.primaries.shift()
    instead.status = "end"
    expect([commands.isReady("a"), commands.isReady("b")]).toEqual([false, true])
  })

  it("refreshes its slots when a node is gone, at most every 200 ms", () => {
    const { client, first, commands } = connected()
    client.primaries.shift()
    expect([commands.isReady("a"), client.refreshes]).toEqual([false, 1])
    vi.advanceTimersByTime(199)
    expect([commands.isReady("a"), client.refreshes]).toEqual([false, 1])
    vi.advanceTimersByTime(1)
    expect([commands.isReady("a"), client.refreshes]).toEqual([false, 2])
    expect([commands.isReady("b"), client.refreshes]).toEqual([true, 2])
    client.primaries.push(first)
    expect([commands.isReady("a"), client.refreshes]).toEqual([true, 2])
  })

  it("refreshes its slots outside the request's async context, because new connections outlive the request", () => {
    const request = new AsyncLocalStorage<string>()
    const { client, commands } = connected()
    client.primaries.length = 0
    const seen: unknown[] = []
    client.refreshSlotsCache = () => void seen.push(request.getStore())
    request.run("the first", () => commands.isReady("a"))
    expect(seen).toEqual([undefined])
  })

  it("returns the name of the node that serves a key, or an empty name for an unassigned slot", () => {
    const { client, commands } = connected()
    expect([commands.nodeOf("a"), commands.nodeOf("b")]).toEqual(["10.0.0.1:7001", "10.0.0.1:7002"])
    expect(commands.nodeOf("c")).toBe("")
    expect([commands.isReady("c"), client.refreshes]).toEqual([false, 1])
    client.slots[keySlot("c")] = []
    expect(commands.nodeOf("c")).toBe("")
  })

  it.each([
    ["no prefix", undefined, ""],
    ["null as a prefix", null, ""],
    ["a prefix", "app:", "app:"],
    ["a prefix as a Buffer", Buffer.from("app:"), "app:"],
    ["a number as a prefix", 7, "7"],
  ])("computes the slot of a key including the client's key prefix: %s", (_, keyPrefix, prefix) => {
    const { commands } = connected(keyPrefix, prefix)
    expect([commands.nodeOf("a"), commands.nodeOf("b")]).toEqual(["10.0.0.1:7001", "10.0.0.1:7002"])
  })

  it("prevents unhandled rejections of `asking`, although callers of `asking` still receive the rejection", async () => {
    class LikeNode extends LikeRedis {
      readonly asked: unknown[] = []

      asking(...args: unknown[]): Promise<unknown> {
        this.asked.push(args)
        return Promise.reject(new Error("Connection is closed."))
      }
    }
    const { client } = connected()
    const node = new LikeNode()
    const unhandled: unknown[] = []
    const note = (reason: unknown) => void unhandled.push(reason)
    process.on("unhandledRejection", note)
    client.emit("+node", node)
    void node.asking("a")
    await expect(node.asking("b")).rejects.toThrow("Connection is closed.")
    // `asking` is wrapped only once, even if the node is added again.
    const { asking } = node
    client.emit("+node", node)
    await new Promise(setImmediate)
    process.off("unhandledRejection", note)
    expect([node.asked, unhandled, node.asking === asking]).toEqual([[["a"], ["b"]], [], true])
  })
})
