import { setImmediate as nextTurn } from "node:timers/promises"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import type { RedisRequest } from "./scripts/script-input.ts"
import { AskedServer } from "./testing/asked-server.ts"
import { FIRST_HIT as POLICY } from "./testing/first-hit.ts"
import { RedisTopology } from "./topology.ts"

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }))
afterEach(() => void vi.useRealTimers())

function topologyOf({ isCluster = false } = {}) {
  const server = new AskedServer(isCluster)
  const nothing = () => undefined
  const listener = { answered: nothing, lost: nothing, grantedLate: nothing }
  const topology = new RedisTopology(server, { clock: { now: () => 5 }, isWide: false }, listener)
  /** Takes one unit. Returns an array that receives the outcome. */
  const take = (key: string, withinMs: number): unknown[] => {
    const outcome: unknown[] = []
    topology
      .senderOf(requestOf(key), withinMs)
      .take(requestOf(key), withinMs)
      .then(
        (answers) => outcome.push(answers),
        (error: unknown) => outcome.push(error),
      )
    return outcome
  }
  const isOpenOf = (key: string) => topology.nodeOf(key).breaker.isOpen
  const open = (key: string) => {
    for (let i = 0; i < 5; i++) topology.nodeOf(key).breaker.failed()
  }
  return { server, topology, take, isOpenOf, open }
}

function requestOf(key: string): RedisRequest {
  return { checks: [{ policy: POLICY, partition: key, cost: 1, shadow: false }], keys: [key] }
}

describe("requests", () => {
  it.each<[what: string, isCluster: boolean, one: [string, number], other: [string, number], is: boolean]>([
    ["for different keys on a single server share a batch sender", false, ["{00}a", 50], ["{ff}b", 50], true],
    ["for keys of one slot in a cluster share a batch sender", true, ["{00}a", 50], ["{00}b", 50], true],
    [
      "for different slots of a cluster do not share a batch sender",
      true,
      ["{00}a", 50],
      ["{01}a", 50],
      false,
    ],
    [
      "for different slots do not share a batch sender, even with text before the braces",
      true,
      ["app{00}a", 50],
      ["app{01}a", 50],
      false,
    ],
    // A call expires at the earliest deadline of its requests.
    ["with similar timeouts share a batch sender", false, ["{00}a", 33], ["{00}a", 63], true],
    [
      "with very different timeouts do not share a batch sender",
      false,
      ["{00}a", 15],
      ["{00}a", 1_000],
      false,
    ],
  ])("%s", (_what, isCluster, one, other, is) => {
    const { topology } = topologyOf({ isCluster })
    const senderOf = ([key, withinMs]: [string, number]) => topology.senderOf(requestOf(key), withinMs)
    expect(senderOf(one) === senderOf(other)).toBe(is)
  })
})

describe("the nodes of a cluster", () => {
  it("are identified by the client's names for them, whatever their slots", () => {
    const { server, topology } = topologyOf({ isCluster: true })
    server.nodeOf = (key) => (key.startsWith("{0") ? "low" : "high")
    expect(topology.nodeOf("{00}a")).toBe(topology.nodeOf("{01}a"))
    expect(topology.nodeOf("{00}a")).not.toBe(topology.nodeOf("{f0}a"))
    // A node stores the last key with which it was looked up.
    expect(topology.nodeOf("{01}a").key).toBe("{01}a")
  })

  it("are forgotten and no longer probed after they have left the cluster", () => {
    const { server, topology, isOpenOf, open } = topologyOf({ isCluster: true })
    const names = new Map([
      ["{00}a", "old"],
      ["{80}a", "other"],
    ])
    server.nodeOf = (key) => names.get(key) ?? ""
    for (const key of names.keys()) open(key)
    expect([topology.openBreakers, vi.getTimerCount()]).toEqual([2, 2])
    names.set("{00}a", "new")
    expect(isOpenOf("{00}a")).toBe(false)
    expect([topology.openBreakers, vi.getTimerCount(), isOpenOf("{80}a")]).toEqual([1, 1, true])
    // A node that returns counts as a new node.
    names.set("{00}a", "old")
    expect(isOpenOf("{00}a")).toBe(false)
    open("{00}a")
    expect(isOpenOf("{00}a")).toBe(true)
    topology.close(new Error("over"))
  })
})

it("a topology returns the recent round-trip times of all its servers", async () => {
  const { server, topology, take } = topologyOf({ isCluster: true })
  server.nodeOf = (key) => key
  for (const [key, ms] of [
    ["{00}a", 3],
    ["{01}a", 5],
  ] as const) {
    const outcome = take(key, 50)
    await nextTurn()
    vi.advanceTimersByTime(ms)
    server.latest.answer([5, "w:5:0:1"])
    await nextTurn()
    expect(outcome).toMatchObject([{ granted: true }])
  }
  expect(topology.recentRoundTripsMs).toEqual([3, 5])
})

it("a closed topology rejects waiting requests and calls no server", async () => {
  const { server, topology, take, open } = topologyOf({ isCluster: true })
  server.nodeOf = (key) => key
  const sent = take("{00}a", 50)
  await nextTurn()
  server.isReady = () => false
  const waiting = take("{01}a", 50)
  open("{02}a")
  await nextTurn()
  const over = new Error("over")
  topology.close(over)
  await nextTurn()
  expect([sent, waiting]).toEqual([[over], [over]])
  server.isReady = () => true
  await vi.advanceTimersByTimeAsync(60_000)
  expect(server.asked).toHaveLength(1)
})
