import { AsyncLocalStorage } from "node:async_hooks"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { keySlot } from "./key-slot.ts"
import { nodeRedisClusterCommands } from "./node-redis-cluster.ts"
import { type LikeNode, LikeNodeRedis, LikeNodeRedisCluster } from "./testing/node-redis-like.ts"

describe("a node-redis cluster", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }))
  afterEach(() => void vi.useRealTimers())

  /** Creates a connected node. */
  function node(address: string): LikeNode & { readonly client: LikeNodeRedis } {
    const client = new LikeNodeRedis()
    client.isReady = true
    return { address, client }
  }

  /** Creates a connected cluster. Its first node serves key a, its second node key b. */
  function connected(client = new LikeNodeRedisCluster(), prefix = "") {
    const first = node("10.0.0.1:7001")
    const second = node("10.0.0.1:7002")
    client.masters.push(first, second)
    client.slots[keySlot(`${prefix}a`)] = { master: first }
    client.slots[keySlot(`${prefix}b`)] = { master: second }
    return { client, first, second, commands: nodeRedisClusterCommands(client) }
  }

  const request = new AsyncLocalStorage<string>()

  /**
   * Like `connected`, but the cluster has the internal method `rediscover`. Records the nodes and the async contexts
   * of the calls to this method.
   */
  function rediscovering() {
    const askedBy: unknown[] = []
    const askedIn: unknown[] = []
    const rediscover = (startWith: unknown) => {
      askedBy.push(startWith)
      askedIn.push(request.getStore())
      return Promise.reject(new Error("it tells the app by an event"))
    }
    return {
      ...connected(Object.assign(new LikeNodeRedisCluster(), { _slots: { rediscover } })),
      askedBy,
      askedIn,
    }
  }

  it("is ready for a key while it is open and the primary of the key's slot is ready", () => {
    const { client, first, commands } = connected()
    expect(commands.isCluster).toBe(true)
    expect([commands.isReady("a"), commands.isReady("b")]).toEqual([true, true])
    vi.advanceTimersByTime(5_000)
    expect(commands.isReady("a")).toBe(true)
    first.client.isReady = false
    expect([commands.isReady("a"), commands.isReady("b")]).toEqual([false, true])
    first.client.isReady = true
    expect([commands.isReady("a"), commands.isOpen()]).toEqual([true, true])
    client.isOpen = false
    expect([commands.isReady("a"), commands.isOpen()]).toEqual([false, false])
  })

  it("is not ready for a key whose slot has no known node", () => {
    const { commands } = connected()
    expect([commands.isReady("c"), commands.nodeOf("c")]).toEqual([false, ""])
  })

  it("is ready for a key whose node is connected by the first command", () => {
    const { client, commands } = connected()
    client.slots[keySlot("c")] = { master: { address: "10.0.0.1:7003" } }
    expect([commands.isReady("c"), commands.nodeOf("c")]).toEqual([true, "10.0.0.1:7003"])
    vi.advanceTimersByTime(5_000)
    expect(commands.isReady("c")).toBe(true)
  })

  it("rediscovers its slots from a ready node after another node was lost, at most every half second", () => {
    const { first, second, commands, askedBy } = rediscovering()
    expect(commands.isReady("a")).toBe(true)
    expect(askedBy).toEqual([])
    first.client.isReady = false
    expect([commands.isReady("a"), askedBy.length]).toEqual([false, 1])
    vi.advanceTimersByTime(499)
    expect([commands.isReady("a"), askedBy.length]).toEqual([false, 1])
    vi.advanceTimersByTime(1)
    expect([commands.isReady("a"), askedBy.length]).toEqual([false, 2])
    for (const client of askedBy) expect(client).toBe(second.client)
    expect([commands.isReady("b"), askedBy.length]).toEqual([true, 2])
  })

  it("rediscovers its slots after a node has responded as a replica, although the node still looks ready", () => {
    const { first, second, commands, askedBy } = rediscovering()
    for (let i = 0; i < 2; i++) commands.reconnect("a")
    expect([first.client.isReady, second.client.isReady, askedBy.length]).toEqual([true, true, 1])
  })

  it("rediscovers its slots outside the request's async context, because new connections outlive the request", () => {
    const { first, commands, askedIn } = rediscovering()
    expect(commands.isReady("a")).toBe(true)
    first.client.isReady = false
    request.run("the first", () => commands.isReady("a"))
    expect(askedIn).toEqual([undefined])
  })

  it("does not rediscover its slots if no node is ready or the client has no method for it", () => {
    const { first, second, commands, askedBy } = rediscovering()
    const others = [connected(), connected(Object.assign(new LikeNodeRedisCluster(), { _slots: {} }))]
    for (const { first, commands } of others) {
      expect(commands.isReady("a")).toBe(true)
      first.client.isReady = false
      expect(commands.isReady("a")).toBe(false)
    }
    expect(commands.isReady("a")).toBe(true)
    first.client.isReady = false
    second.client.isReady = false
    expect([commands.isReady("a"), askedBy.length]).toEqual([false, 0])
  })

  it("rediscovers its slots from a connected node, even if other nodes have no client yet", () => {
    const { client, first, second, commands, askedBy } = rediscovering()
    client.masters.unshift({ address: "10.0.0.1:7003" })
    expect(commands.isReady("a")).toBe(true)
    first.client.isReady = false
    expect(commands.isReady("a")).toBe(false)
    expect(askedBy).toEqual([second.client])
  })

  it.each([
    ["no prefix", undefined, ""],
    ["a prefix", "app:", "app:"],
    ["a prefix as a Buffer", Buffer.from("app:"), "app:"],
  ])("computes the slot of a key including the client's key prefix: %s", (_, keyPrefix, prefix) => {
    const { commands } = connected(new LikeNodeRedisCluster(keyPrefix), prefix)
    expect([commands.nodeOf("a"), commands.nodeOf("b")]).toEqual(["10.0.0.1:7001", "10.0.0.1:7002"])
  })

  it("runs scripts and deletes keys with its methods `evalSha`, `eval` and `del`", async () => {
    const { client, commands } = connected()
    await commands.evalsha("abc", ["k"], ["1"])
    await commands.eval("return 1", ["k"], ["1"])
    await commands.del(["k"])
    expect(client.asked).toEqual([
      ["evalSha", "abc", { keys: ["k"], arguments: ["1"] }],
      ["eval", "return 1", { keys: ["k"], arguments: ["1"] }],
      ["del", ["k"]],
    ])
  })
})
