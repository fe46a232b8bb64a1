import { peekStore } from "@sluice/core/stores"
import { Redis } from "ioredis"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { SLIDING as MINUTELY } from "../../packages/contracts/src/store/asking.ts"
import type { Policy } from "../../packages/core/src/ground/policy.ts"
import type { Check, Store } from "../../packages/core/src/stores/store.ts"
import { keyNamer } from "../../packages/redis/src/key.ts"
import { redisStore } from "../../packages/redis/src/redis-store.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"

// The tests use the server's own time. With a window of 30 days, they almost never run into the next window.
const WINDOW_MS = 30 * 86_400_000
const SLIDING: Policy = { ...MINUTELY, counter: "sliding1", windowMs: WINDOW_MS }
const FIXED: Policy = { ...SLIDING, counter: "fixed001", algorithm: "fixed-window" }
const FIRST_HIT: Policy = { ...FIXED, counter: "firsthit", align: "first-hit" }
const EACH: readonly Policy[] = [SLIDING, FIXED, FIRST_HIT]
/** A policy for each other kind of counter. */
const OTHERS: readonly Policy[] = [
  { ...SLIDING, counter: "sub", buckets: 12 },
  { ...SLIDING, counter: "strict", algorithm: "sliding-window-strict", buckets: 60 },
  { ...SLIDING, counter: "log", algorithm: "sliding-log" },
  { ...SLIDING, counter: "token", algorithm: "token-bucket" },
  { ...SLIDING, counter: "periodic", algorithm: "token-bucket", refill: "periodic" },
]

const { server } = await redisForTests()
let clients: readonly [Redis, ...Redis[]]
let made = 0
let opened: Store[] = []

beforeAll(async () => {
  const connect = () => new Redis(server.port, server.host)
  clients = [connect(), connect(), connect()]
  // Make the server load the script.
  await open().stores[0].take([check(SLIDING, "first")])
})
afterAll(async () => {
  for (const client of clients ?? []) client.disconnect()
})

afterEach(closeAll)

/** Closes all stores. Each store must be closed, because an open store keeps its listeners on the client. */
function closeAll(): void {
  for (const store of opened) void store.close()
  opened = []
}

function check(policy: Policy, partition: string, cost = 1, shadow = false): Check {
  return { policy, partition, cost, shadow }
}

/** Creates a store on each client. All stores share an unused prefix. */
function open(): { readonly prefix: string; readonly stores: readonly [Store, ...Store[]] } {
  const prefix = `${made++}:`
  const openOn = (client: Redis) => redisStore({ client, prefix, denyCacheMs: 0, timeoutMs: 10_000 })
  const [client, ...others] = clients
  const stores: [Store, ...Store[]] = [openOn(client), ...others.map(openOn)]
  opened.push(...stores)
  return { prefix, stores }
}

describe("a key with the value 0", () => {
  it("is treated as an unused counter", async () => {
    for (const policy of [...EACH, ...OTHERS]) {
      const { prefix, stores } = open()
      for (const cost of [1, 0]) {
        const key = keyNamer(prefix)(check(policy, `${cost}`))
        await clients[0].set(key, "0")
        const answer = await stores[0].take([check(policy, `${cost}`, cost)])
        expect(answer).toMatchObject({ granted: true, checks: [{ state: { current: cost }, taken: cost }] })
        expect((await clients[0].pttl(key)) > 0).toBe(cost > 0)
      }
    }
  })
})

describe("when a clock is set back until window codes repeat", () => {
  const dayMs = 86_400_000

  /**
   * Writes a full key of the window that is `windowsAhead` of the current window. The key expires `longerMs` after
   * the current window. Returns true if a request for this key is then granted.
   */
  async function grantedAfter(
    windowsAhead: number,
    longerMs: number,
    beside = 0,
    ask: "take" | "peek" = "take",
  ): Promise<boolean> {
    const { prefix, stores } = open()
    const policy: Policy = { ...SLIDING, windowMs: dayMs }
    const [client] = clients
    const [seconds] = await client.time()
    const code = ((Math.floor(Number(seconds) / 86_400) + windowsAhead) % 2047) + 1
    const key = keyNamer(prefix)(check(policy, "ann"))
    // The rest of the current window, which depends on the time of day.
    const leftMs = dayMs - ((Number(seconds) * 1_000) % dayMs)
    await client.set(key, String(code * 2 ** 42 + policy.limit), "PX", leftMs + longerMs)
    const others = Array.from({ length: beside }, (_, i) => check(FIXED, `${i}`))
    const asked = [...others, check(policy, "ann")]
    const { granted } = await (ask === "take" ? stores[0].take(asked) : peekStore(stores[0], asked))
    return granted
  }

  it.each([0, 1])("the key's TTL shows which window it belongs to, with %i other checks", async (beside) => {
    expect(await grantedAfter(2_046, 2_047 * dayMs, beside)).toBe(false)
    // A full window admits again in the first millisecond of the next window, when its key expires.
    expect(await grantedAfter(-1, 0, beside)).toBe(true)
    // The same is true of a key whose TTL was set late, because the server was busy for a whole window.
    expect(await grantedAfter(-1, dayMs, beside)).toBe(true)
    expect(await grantedAfter(-1, dayMs, beside, "peek")).toBe(true)
  })

  it("the keys' TTLs prevent units from being granted twice", async () => {
    expect(await grantedAfter(2_042, 2_043 * dayMs)).toBe(false)
    // A key of five windows ago, which should already have expired, is about to expire.
    expect(await grantedAfter(-5, 0)).toBe(true)
    expect(await grantedAfter(3, 4 * dayMs)).toBe(false)
  })
})
