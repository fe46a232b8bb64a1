import { memoryStore } from "@sluice/core"
import { peekStore } from "@sluice/core/stores"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import type { CounterState } from "../../packages/core/src/algorithms/algorithm.ts"
import { strictWindow } from "../../packages/core/src/algorithms/strict-window.ts"
import { manualClock } from "../../packages/core/src/ground/manual-clock.ts"
import type { Policy } from "../../packages/core/src/ground/policy.ts"
import type { StoreResult } from "../../packages/core/src/stores/store.ts"
import { takeEach } from "../../packages/core/src/stores/testing/take-each.ts"
import type { RedisStore } from "../../packages/redis/src/redis-store.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { compactStore } from "./compact-store.ts"
import { callsBetween, callsOf, timeOf } from "./counted.ts"

const START_MS = Date.UTC(2024, 0, 1)
const SECOND_MS = 1_000
const LIMIT = 2 ** 17 - 1
const POLICY: Policy = {
  name: "strict",
  counter: "AbCdEfGh",
  algorithm: "sliding-window-strict",
  limit: LIMIT,
  windowMs: 60 * SECOND_MS,
  align: "epoch",
  buckets: 60,
}
const CLIENT = { policy: POLICY, partition: "203.0.113.27" }

const { server, client } = await redisForTests()

const opened: RedisStore[] = []
beforeEach(() => client.flushall())
afterEach(() => {
  for (const store of opened.splice(0)) store.close()
})

/** Creates a store, on the server's clock or on a test clock, that stores the counter of a strict window in a hash. */
function open(clock?: { now(): number }): RedisStore {
  const store = compactStore(client, clock)
  opened.push(store)
  return store
}

async function take(store: RedisStore, cost: number, policy = POLICY): Promise<StoreResult> {
  const answer = await store.take([{ ...CLIENT, policy, cost, shadow: false }])
  return answer as StoreResult
}

async function theKey(): Promise<string> {
  const [key, ...others] = await client.keys("*")
  expect(others).toEqual([])
  return key as string
}

/** Takes the given units in consecutive seconds. Compares the states and expiries in two stores. */
async function follow(units: readonly number[], policy = POLICY): Promise<void> {
  const clock = manualClock(START_MS)
  const [store, twin] = [open(clock), memoryStore({ clock })]
  try {
    for (const cost of units) {
      if (cost > 0) {
        const expected = twin.take([{ ...CLIENT, policy, cost, shadow: false }])
        const { checks = [] } = expected ?? {}
        const livesMs = strictWindow.emptyAtMs(checks[0]?.state as CounterState, policy) - clock.now()
        const before = await timeOf(server)
        expect((await take(store, cost, policy)).granted).toBe(expected?.granted)
        const after = await timeOf(server)
        const endsMs = await client.pexpiretime(await theKey())
        // A refusal writes nothing.
        if (expected?.granted) {
          expect(endsMs).toBeGreaterThanOrEqual(before + livesMs)
          expect(endsMs).toBeLessThanOrEqual(after + livesMs)
        }
      }
      const look = [{ ...CLIENT, policy, cost: 0, shadow: false }]
      const [expected, kept] = [twin.read(look), await store.read(look)]
      expect({ parts: "", ...kept.counters[0]?.state }).toEqual(expected.counters[0]?.state)
      clock.advance(SECOND_MS)
    }
  } finally {
    twin.close()
  }
}

describe("the hash of a strict window", () => {
  it.each([
    { limit: 60, units: Array(61).fill(1) },
    { limit: 1_000, units: Array(61).fill(10) },
    { limit: 10_000, units: Array(61).fill(160) },
    { limit: 100_000, units: Array(61).fill(1_600) },
  ])(
    "takes at most 160 bytes, and 320 with its key, when 60 sub-windows count a limit of $limit",
    async ({ limit, units }) => {
      await follow(units, { ...POLICY, limit })
      const key = await theKey()
      expect(await client.type(key)).toBe("hash")
      expect(await client.object("ENCODING", key)).toBe("listpack")
      const fields = Object.entries(await client.hgetall(key)).flat()
      expect(fields.join("").length).toBeLessThanOrEqual(160)
      expect(await client.memory("USAGE", key)).toBeLessThanOrEqual(320)
    },
  )

  it("is updated by one command within a sub-window, and in two fields when the next begins", async () => {
    const clock = manualClock(START_MS)
    const store = open(clock)
    for (let second = 0; second < 30; second++) {
      await take(store, 1)
      clock.advance(SECOND_MS)
    }
    await take(store, 1)
    const usual = await callsOf(server)
    await take(store, 1)
    const next = await callsOf(server)
    expect(callsBetween(usual, next)).toEqual({ evalsha: 1, hincrby: 1 })
    clock.advance(SECOND_MS)
    await take(store, 1)
    const calls = callsBetween(next, await callsOf(server))
    expect(calls).toEqual({ evalsha: 1, hget: 1, hincrby: 1, hset: 1, pexpire: 1 })
  })

  it.each([
    ["its own call", false],
    ["a call of several requests", true],
  ])(
    "still includes earlier sub-windows after units of the current sub-window are taken in %s",
    async (_what, isOneOfSeveral) => {
      const clock = manualClock(START_MS)
      const store = open(clock)
      const other = { ...CLIENT, partition: "another", cost: 1, shadow: false }
      const isGranted = async (cost: number) => {
        const request = [{ ...CLIENT, cost, shadow: false }]
        return (await takeEach(store, isOneOfSeveral ? [request, [other]] : [request]))[0]?.granted
      }
      expect(await isGranted(LIMIT - 3)).toBe(true)
      clock.advance(SECOND_MS)
      expect([await isGranted(1), await isGranted(3), await isGranted(1)]).toEqual([true, false, true])
      expect([await isGranted(2), await isGranted(1), await isGranted(1)]).toEqual([false, true, false])
    },
  )

  it("needs access to at most two fields, even if it contains one field more than necessary", async () => {
    const clock = manualClock(START_MS)
    const store = open(clock)
    for (const [second, cost] of [
      [0, 100],
      ...[55, 56, 57, 58, 59, 60, 61].map((each) => [each, 1] as const),
    ] as const) {
      clock.set(START_MS + second * SECOND_MS)
      await take(store, cost)
    }
    expect(await client.hget(await theKey(), "2")).not.toBeNull()
    clock.advance(SECOND_MS)
    const before = await callsOf(server)
    await take(store, 1)
    const calls = callsBetween(before, await callsOf(server))
    expect(calls).toEqual({ evalsha: 1, hget: 1, hincrby: 1, hset: 1, pexpire: 1 })
  })

  it("becomes a string when the limit is too large, then a hash again, without losing units", async () => {
    const clock = manualClock(START_MS)
    const store = open(clock)
    const large = { ...POLICY, limit: 10_000_000 }
    await take(store, 5)
    for (const [policy, cost, type] of [
      [large, 1_000, "string"],
      [POLICY, 70, "hash"],
      [large, 1_000_000, "string"],
      // Under the lower limit the request is refused, so nothing is written.
      [POLICY, 1, "string"],
    ] as const) {
      clock.advance(SECOND_MS)
      expect((await take(store, cost, policy)).granted).toBe(cost > 1)
      expect(await client.type(await theKey())).toBe(type)
    }
    const answer = await peekStore(store, [{ ...CLIENT, policy: large, cost: 0, shadow: false }])
    expect(answer?.checks[0]?.state).toMatchObject({ previous: 1_001_075 })
  })

  it.each([
    { what: "no earlier sub-window", parts: {}, sum: 0n, count: 0n },
    { what: "an earlier sub-window", parts: { 1: "12" }, sum: 2n, count: 1n },
  ])(
    "keeps its units when the clock is set back until sub-window codes repeat, with $what",
    async ({ parts, sum, count }) => {
      const store = open()
      const minutes = { ...POLICY, windowMs: 60 * 60_000 }
      await take(store, 5, minutes)
      const key = await theKey()
      const code = BigInt((await client.hget(key, "n")) as string) / 2n ** 44n - 1n
      // The number's code could mean the third sub-window before the current one, or the 508th after it. The TTL
      // shows that it is the 508th after it.
      const number = (((code + 508n) % 511n) + 1n) * 2n ** 44n + count * 2n ** 35n + sum * 2n ** 18n + 5n
      await client.hset(key, { n: `${number}`, ...parts })
      await client.pexpire(key, (508 + 61) * 60_000)
      const answer = await take(store, 1, minutes)
      expect(answer.granted).toBe(true)
      const look = await peekStore(store, [{ ...CLIENT, policy: minutes, cost: 0, shadow: false }])
      // All units count from now on.
      expect(look?.checks[0]?.state).toMatchObject({ current: 6 + Number(sum), previous: 0 })
      expect(await client.pttl(key)).toBeLessThanOrEqual(61 * 60_000)
    },
  )
})
