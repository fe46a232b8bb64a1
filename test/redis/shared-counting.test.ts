import { peekStore } from "@sluice/core/stores"
import { Redis } from "ioredis"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { algorithmOf } from "../../packages/core/src/algorithms/kinds.ts"
import type { Policy } from "../../packages/core/src/ground/policy.ts"
import type { Check, Counted, Store, StoreResult } from "../../packages/core/src/stores/store.ts"
import { keyNamer } from "../../packages/redis/src/key.ts"
import { redisStore } from "../../packages/redis/src/redis-store.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { MOST_PACKED } from "./traced-policies.ts"

// The tests use the server's own time. A window of 30 days ensures that they do not cross into the next one.
const WINDOW_MS = 30 * 86_400_000
const SLIDING: Policy = {
  name: "shared",
  counter: "sliding1",
  algorithm: "sliding-window",
  limit: 10,
  windowMs: WINDOW_MS,
  align: "epoch",
}
const FIXED: Policy = { ...SLIDING, counter: "fixed001", algorithm: "fixed-window" }
const FIRST_HIT: Policy = { ...FIXED, counter: "firsthit", align: "first-hit" }
const EACH: readonly Policy[] = [SLIDING, FIXED, FIRST_HIT]
/** A policy of each other kind of counter. */
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

/** Closes all stores. An open store keeps listening to its client. */
function closeAll(): void {
  for (const store of opened) void store.close()
  opened = []
}

function check(policy: Policy, partition: string, cost = 1, shadow = false): Check {
  return { policy, partition, cost, shadow }
}

/** Creates a store on each client. All of them share an unused prefix. */
function open(): { readonly prefix: string; readonly stores: readonly [Store, ...Store[]] } {
  const prefix = `${made++}:`
  const openOn = (client: Redis) => redisStore({ client, prefix, denyCacheMs: 0, timeoutMs: 10_000 })
  const [client, ...others] = clients
  const stores: [Store, ...Store[]] = [openOn(client), ...others.map(openOn)]
  opened.push(...stores)
  return { prefix, stores }
}

describe("a key that does not hold a valid counter", () => {
  // corrupt-values.test.ts and corrupt-keys.test.ts try other values, with less around them.
  const texts = ["-5", "rubbish", "w:1:2", `${2n ** 53n}`]
  const rubbish: readonly {
    readonly what: string
    readonly put: (client: Redis, key: string) => Promise<unknown>
  }[] = [
    ...texts.map((text) => ({
      what: JSON.stringify(text),
      put: (client: Redis, key: string) => client.set(key, text),
    })),
    { what: "a number that expires", put: (client, key) => client.set(key, "5", "PX", 1_000_000) },
    { what: "a list", put: (client, key) => client.rpush(key, "1", "2") },
    { what: "a hash", put: (client, key) => client.hset(key, "1", "2") },
  ]

  it.each(rubbish)(
    "but $what fails its own requests, is left unchanged, and does not affect other requests",
    async ({ put }) => {
      const [client] = clients
      for (const policy of [...EACH, ...OTHERS, { ...SLIDING, limit: MOST_PACKED + 1 }]) {
        closeAll()
        const { prefix, stores } = open()
        const bad = check(policy, "bad")
        const good = check(policy, "good")
        const key = keyNamer(prefix)(bad)
        await stores[0].take([check(policy, "before")])
        await put(client, key)
        const before = [await client.dumpBuffer(key), await client.pexpiretime(key)]
        const calls = await callsOf("evalsha")
        const answers = await Promise.allSettled(
          [
            [good],
            [bad],
            [bad],
            [{ ...bad, shadow: true }],
            [{ ...bad, cost: 0 }],
            [{ ...bad, cost: 3 }],
            [good, bad],
            [{ ...bad, shadow: true }, good],
            [good],
            [
              { ...good, cost: 2 },
              { ...good, cost: 3 },
            ],
          ].map(async (checks) => (await stores[0].take(checks)) as StoreResult),
        )
        expect(await callsOf("evalsha")).toBe(calls + 1)
        const errors = Array.from({ length: 7 }, () => ERROR)
        expect(answers.map((result) => told(result, policy))).toEqual([1, ...errors, 2, 7])
        await expect(peekStore(stores[0], [bad])).rejects.toMatchObject({ code: "SLUICE_STORE_UNAVAILABLE" })
        const { state } = await look(stores[0], good)
        await stores[0].refund([{ ...bad, units: 1, after: state }])
        expect([await client.dumpBuffer(key), await client.pexpiretime(key)]).toEqual(before)
        await stores[0].reset([bad])
        expect(await stores[0].take([bad])).toMatchObject({
          granted: true,
          checks: [{ state: { current: 1 } }],
        })
        expect(await client.pttl(key)).toBeGreaterThan(0)
      }
    },
  )

  it("is not assumed for 0, which is an unused counter", async () => {
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

const ERROR = "StoreUnavailableError: no counter"

/** Returns the units in use by the last check of an answer, or the error for a key without a valid counter. */
function told(result: PromiseSettledResult<StoreResult>, policy: Policy): number | string | undefined {
  if (result.status === "fulfilled") {
    const { nowMs, checks } = result.value
    const last = checks.at(-1)
    return last && algorithmOf(policy).used(last.state, policy, nowMs)
  }
  const { name, message } = result.reason as Error
  return message.includes("does not contain a valid counter") ? `${name}: no counter` : message
}

/** Returns the state of a counter. */
async function look(store: Store, one: Check): Promise<Counted> {
  const answer = await peekStore(store, [one])
  return answer?.checks[0] as Counted
}

/** Returns how often the server has run a command since it started. */
async function callsOf(command: string): Promise<number> {
  const stats = await clients[0].info("commandstats")
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0)
}

describe("a clock set back so far that the codes of the windows repeat", () => {
  const dayMs = 86_400_000

  /**
   * Writes a full key of the window that is `windowsAhead` of the present one. Its TTL ends `longerMs` after the
   * present window. True if a request on it is then granted.
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
    // The rest of the present window, at any time of the day.
    const leftMs = dayMs - ((Number(seconds) * 1_000) % dayMs)
    await client.set(key, String(code * 2 ** 42 + policy.limit), "PX", leftMs + longerMs)
    const others = Array.from({ length: beside }, (_, i) => check(FIXED, `${i}`))
    const asked = [...others, check(policy, "ann")]
    const { granted } = await (ask === "take" ? stores[0].take(asked) : peekStore(stores[0], asked))
    return granted
  }

  it.each([0, 1])(
    "is distinguished from the previous window by the key's TTL, with %i other checks",
    async (beside) => {
      expect(await grantedAfter(2_046, 2_047 * dayMs, beside)).toBe(false)
      // A full window admits again in the first millisecond of the next window, when its key expires.
      expect(await grantedAfter(-1, 0, beside)).toBe(true)
      // Also a key whose TTL was set late, by a server that was busy for a whole window.
      expect(await grantedAfter(-1, dayMs, beside)).toBe(true)
      expect(await grantedAfter(-1, dayMs, beside, "peek")).toBe(true)
    },
  )

  it("is detected by the TTLs of the keys, and admits no unit twice", async () => {
    expect(await grantedAfter(2_042, 2_043 * dayMs)).toBe(false)
    // Five windows ago: a key that should already have expired and is about to.
    expect(await grantedAfter(-5, 0)).toBe(true)
    expect(await grantedAfter(3, 4 * dayMs)).toBe(false)
  })
})
