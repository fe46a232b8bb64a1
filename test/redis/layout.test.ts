import { peekStore } from "@sluice/core/stores"
import { beforeEach, describe, expect, it } from "vitest"
import {
  check,
  FIRST_HIT,
  FIXED,
  LOG,
  MINUTE,
  PERMITS,
  SLIDING,
} from "../../packages/contracts/src/store/asking.ts"
import { type ManualClock, manualClock } from "../../packages/core/src/ground/manual-clock.ts"
import type { Policy } from "../../packages/core/src/ground/policy.ts"
import { takeEach } from "../../packages/core/src/stores/testing/take-each.ts"
import { keyNamer } from "../../packages/redis/src/key.ts"
import type { RedisStore } from "../../packages/redis/src/redis-store.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { compactStore } from "./compact-store.ts"

// Other versions of the library that use the same digit in the key read these values too. So a change of the layout
// needs a new digit, and counters then start from zero.
const LAYOUT = "sl2:"

const { client } = await redisForTests()
let clock: ManualClock
let store: RedisStore
/** The start of minute 28,401,120. */
const START_MS = Date.UTC(2024, 0, 1)
beforeEach(async () => {
  await client.flushall()
  clock = manualClock(START_MS)
  store = compactStore(client, clock)
  return () => store.close()
})

const STRICT: Policy = {
  ...SLIDING,
  name: "strict",
  counter: "strict",
  algorithm: "sliding-window-strict",
  buckets: 60,
}
const LARGE = 2 ** 20

describe("a key of the first layout", () => {
  it.each<{
    readonly what: string
    readonly policy: Policy
    readonly last?: number
    readonly holds: unknown
  }>([
    // The code of the minute * 2^42 + 3 * 2^21 + 4.
    { what: "two windows", policy: SLIDING, holds: packed(28_401_121, 3, 4) },
    { what: "permits", policy: PERMITS, holds: packed(28_401_121, 3, 4) },
    { what: "a fixed window", policy: FIXED, holds: packed(28_401_121, 0, 4) },
    {
      what: "large windows",
      policy: { ...SLIDING, limit: LARGE + 3 },
      last: LARGE,
      holds: "w:1704067260000:3:1048576",
    },
    { what: "a window from the first hit", policy: FIRST_HIT, holds: "w:1704067260000:0:4" },
    { what: "sub-windows", policy: { ...SLIDING, buckets: 12 }, holds: "w:1704067260000:3:4:1000000000003" },
    // The code of the second * 2^44 + 60 parts * 2^35 + 3 * 2^18 + 4.
    {
      what: "a strict window",
      policy: STRICT,
      holds: strict(1_704_067_260, 60, 3, 4, `1${"0".repeat(59)}3`),
    },
    {
      what: "a large strict window",
      policy: { ...STRICT, limit: LARGE },
      holds: `w:1704067260000:3:4:1${"0".repeat(59)}3`,
    },
    // Each entry contains its instant, modulo 64^3, and its units.
    { what: "a log", policy: LOG, holds: "w:1704067260000:0:7:1O@03]iP4" },
    {
      what: "a bucket",
      policy: { ...SLIDING, algorithm: "token-bucket", limit: 2, burst: 10 },
      holds: "w:1704067260000:0:5",
    },
    {
      what: "a bucket that is refilled each minute",
      policy: { ...SLIDING, algorithm: "token-bucket", limit: 2, burst: 10, refill: "periodic" },
      holds: "w:1704067260000:0:5",
    },
  ])("contains $what", async ({ policy, last = 4, holds }) => {
    for (const cost of [3, last]) {
      await store.take([check(policy, cost)])
      clock.advance(MINUTE)
    }
    const [key = "", ...others] = await client.keys("*")
    expect([key.slice(0, LAYOUT.length), others]).toEqual([LAYOUT, []])
    const value = (await client.type(key)) === "hash" ? await client.hgetall(key) : await client.get(key)
    expect(value).toEqual(holds)
  })

  it("is independent of the keys of other layouts", async () => {
    const key = keyNamer("")(check(SLIDING))
    const [older, newer] = [key.replace("sl2:", "sl1:"), key.replace("sl2:", "sl3:")]
    for (const other of [older, newer]) await client.set(other, packed(28_401_120, 0, 10))
    const answer = await store.take([check(SLIDING, 10)])
    expect(answer?.granted).toBe(true)
    await store.reset([check(SLIDING)])
    expect((await client.keys("*")).sort()).toEqual([older, newer])
  })
})

function packed(minute: number, previous: number, current: number): string {
  const code = BigInt((minute % 2_047) + 1)
  return `${code * 2n ** 42n + BigInt(previous) * 2n ** 21n + BigInt(current)}`
}

function strict(second: number, count: number, sum: number, current: number, parts: string): object {
  const code = BigInt((second % 511) + 1)
  const n = `${code * 2n ** 44n + BigInt(count) * 2n ** 35n + BigInt(sum) * 2n ** 18n + BigInt(current)}`
  const pieces = parts.match(/.{1,63}/g) ?? []
  return { n, ...Object.fromEntries(pieces.map((piece, i) => [`${i + 1}`, piece])) }
}

// Three files decode the number of a strict window: formulas.lua (which the fast paths use), strict-number.lua and
// script-reply.ts.
describe("the number of a strict window is decoded in the same way by", () => {
  const [sum, current] = [1_000, 70]
  const other = check(FIXED, 1, { partition: "another" })

  /** Writes a counter with `room` units left. Returns its policy. */
  async function put(room: number): Promise<Policy> {
    const key = keyNamer("")(check(STRICT))
    await client.del(key)
    // In base 64, the thousand units of the previous second are 15 * 64 + 40.
    await client.hset(key, strict(START_MS / 1_000, 1, sum, current, "2?X"))
    await client.pexpire(key, MINUTE)
    return { ...STRICT, limit: sum + current + room }
  }

  it.each([
    ["a call with one check", (policy: Policy) => [[check(policy)]]],
    ["a call with several checks", (policy: Policy) => [[check(policy)], [other]]],
    ["a request with several checks", (policy: Policy) => [[check(policy), other]]],
  ])("%s", async (_what, requests) => {
    const [granted] = await takeEach(store, requests(await put(1)))
    expect(granted?.granted).toBe(true)
    expect(granted?.checks[0]?.state).toMatchObject({
      startMs: START_MS,
      previous: sum,
      current: current + 1,
    })
    const [refused] = await takeEach(store, requests(await put(0)))
    expect(refused?.granted).toBe(false)
    expect(refused?.checks[0]?.state).toEqual({ startMs: START_MS, previous: sum, current, parts: "2?X" })
  })

  it("a peek and by a take that begins a sub-window", async () => {
    const policy = await put(1)
    const look = await peekStore(store, [check(policy, 0)])
    expect(look?.checks[0]?.state).toEqual({ startMs: START_MS, previous: sum, current, parts: "2?X" })
    // After two seconds, there is an empty second between the old and the new units.
    clock.advance(2_000)
    await store.take([check(policy)])
    expect(await client.hgetall(keyNamer("")(check(STRICT)))).toEqual(
      strict(START_MS / 1_000 + 2, 3, sum + current, 1, "20016?X"),
    )
  })
})
