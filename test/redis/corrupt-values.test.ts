import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { SLIDING as MINUTELY } from "../../packages/contracts/src/store/asking.ts"
import { digits } from "../../packages/core/src/algorithms/packed-counts.ts"
import type { Policy } from "../../packages/core/src/ground/policy.ts"
import type { Check } from "../../packages/core/src/stores/store.ts"
import { keyNamer } from "../../packages/redis/src/key.ts"
import type { RedisStore } from "../../packages/redis/src/redis-store.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { compactStore } from "./compact-store.ts"

const MINUTE_MS = 60_000
const INVALID = { kind: "invalid-answer" }
/** The start of a minute. At `NOW_MS`, half of the third of its six sub-windows has passed. */
const START_MS = Date.UTC(2024, 0, 1)
const NOW_MS = START_MS + 25_000
const SUB_MS = START_MS + 20_000
const TTL_MS = 40_000

const SLIDING: Policy = { ...MINUTELY, counter: "Zk3hX0pQ9vLm2TcY", limit: 5 }
const IN_FLIGHT: Policy = { ...SLIDING, algorithm: "in-flight" }
const FIXED: Policy = { ...SLIDING, algorithm: "fixed-window" }
const FIRST_HIT: Policy = { ...FIXED, align: "first-hit" }
const CALENDAR: Policy = { ...FIXED, periods: [START_MS, START_MS + 7] }
const BUCKETED: Policy = { ...SLIDING, buckets: 6 }
const STRICT: Policy = { ...BUCKETED, algorithm: "sliding-window-strict" }
const LOG: Policy = { ...SLIDING, algorithm: "sliding-log" }
const LEVEL: Policy = { ...SLIDING, algorithm: "token-bucket" }
const PERIODIC: Policy = { ...LEVEL, refill: "periodic" }
const PENALTY: Policy = {
  ...SLIDING,
  algorithm: "penalty",
  limit: 3,
  penalty: { refusals: 3, withinMs: MINUTE_MS, forMs: [MINUTE_MS] },
}

const { client } = await redisForTests()
let store: RedisStore
beforeAll(async () => {
  const clock = { now: () => NOW_MS }
  store = compactStore(client, clock)
})
afterAll(async () => {
  store?.close()
})
beforeEach(() => client.flushall())

function check(policy: Policy, cost: number): Check {
  return { policy, partition: "ann", cost, shadow: false }
}

/** Returns the packed value of the current window, or of a window `back` windows ago. */
function packed(previous: number, current: number, back = 0): string {
  const code = BigInt(((START_MS / MINUTE_MS - back) % 2_047) + 1)
  return String(code * 2n ** 42n + BigInt(previous) * 2n ** 21n + BigInt(current))
}

/** Returns the hash of a strict window that was last counted in this sub-window, or `back` sub-windows ago. */
function strict(back: number, sum: number, current: number, parts: string) {
  const code = BigInt(((SUB_MS / 10_000 - back) % 511) + 1)
  const count = BigInt(Math.max(0, parts.length - 1))
  const n = code * 2n ** 44n + count * 2n ** 35n + BigInt(sum) * 2n ** 18n + BigInt(current)
  return { n: String(n), ...(parts !== "" && { 1: parts }) }
}

/** Returns a log with entries of these ages and units. */
function log(current: number, ...entries: readonly (readonly [agoMs: number, units: number])[]): string {
  const texts = entries.map(([agoMs, units]) => digits((NOW_MS - agoMs) % 64 ** 3, 3) + digits(units, 1))
  return `w:${NOW_MS}:0:${current}${texts.length === 0 ? "" : `:1${texts.join("")}`}`
}

type Row = readonly [what: string, policy: Policy, value: string | Record<string, string>, cost?: number]

const REFUSED: readonly Row[] = [
  ...[SLIDING, IN_FLIGHT, FIRST_HIT, CALENDAR, BUCKETED, STRICT, LOG, LEVEL, PERIODIC].flatMap(
    (policy): Row[] => {
      const { algorithm, align, periods = "no", buckets = "no", refill = "no" } = policy
      const kind = `${algorithm} (${align}, ${periods} periods, ${buckets} sub-windows, ${refill} refill)`
      return [
        [`another program's string under ${kind}`, policy, "rubbish"],
        [`another program's number under ${kind}`, policy, "-5"],
        [`another program's hash under ${kind}`, policy, { owner: "somebody" }],
      ]
    },
  ),
  ["a strict window with another program's number", STRICT, { n: "5", owner: "somebody" }],
  ["a strict window without its parts", STRICT, { n: strict(-255, 7, 0, "1111").n }],
  ["a strict window of strings", STRICT, { n: "n", 1: "1" }],
  ["two windows with a packed count that is too large", SLIDING, packed(0, 2 ** 20)],
  ["two windows with a packed count that overflows", SLIDING, packed(0, 2 ** 21 - 1)],
  ["permits with a packed count that is too large", IN_FLIGHT, packed(0, 2 ** 20)],
  ["permits with a packed count that overflows", IN_FLIGHT, packed(0, 2 ** 21 - 1)],
  ["permits with a packed count that is too large, next to others", IN_FLIGHT, packed(5, 2 ** 20), 5],
  ["permits that start at an unaligned time", IN_FLIGHT, `w:${NOW_MS}:0:1`],
  ["two windows with a count that is not exact", SLIDING, `w:${START_MS}:0:9007199254740993`],
  ["two windows with a count of 400 digits", SLIDING, `w:${START_MS}:${"9".repeat(400)}:0`],
  ["two windows that start at an unaligned time", SLIDING, `w:${NOW_MS}:0:1`],
  ["a fixed window with a previous window", FIXED, `w:${START_MS}:1:1`],
  ["a fixed window that starts at an unaligned time", FIXED, `w:${NOW_MS}:0:1`],
  ["a window from the first hit that is packed", FIRST_HIT, packed(0, 1)],
  ["a window from the first hit with a previous window", FIRST_HIT, `w:${NOW_MS}:1:1`],
  ["a calendar period that is packed", CALENDAR, packed(0, 1)],
  ["sub-windows whose sum is too large, before they refuse", BUCKETED, `w:${SUB_MS}:5:1:1111`],
  ["sub-windows whose sum is too small, when the next one begins", BUCKETED, `w:${SUB_MS - 10_000}:1:1:1111`],
  ["sub-windows whose sum is too large, when the next one begins", BUCKETED, `w:${SUB_MS - 10_000}:4:0:1111`],
  ["more sub-windows than the window has", BUCKETED, `w:${SUB_MS - 10_000}:1:0:10000001`],
  ["a sum without sub-windows", BUCKETED, `w:${SUB_MS - 10_000}:3:0`, 0],
  ["sub-windows with a count of 400 digits", BUCKETED, `w:${SUB_MS}:3:${"9".repeat(400)}:1111`],
  [
    "sub-windows with a count of 400 digits, when the next one begins",
    BUCKETED,
    `w:${SUB_MS - 10_000}:3:${"9".repeat(400)}:1111`,
  ],
  ["a strict window whose sum is too large, before it refuses", STRICT, strict(0, 5, 1, "1111")],
  ["a strict window whose sum is too small, when the next one begins", STRICT, strict(1, 1, 1, "1111")],
  ["a strict window whose sum is too large, when the next one begins", STRICT, strict(1, 4, 0, "1111"), 2],
  ["a strict window with a count that is too large", STRICT, strict(0, 0, 2 ** 17, "")],
  ["a strict window with a count that overflows", STRICT, strict(0, 0, 2 ** 18 - 1, "")],
  [
    "a strict window whose counts have no digits",
    STRICT,
    { ...strict(1, 0, 1, "0"), n: strict(1, 0, 1, "11").n },
  ],
  ["a log whose count is too large, before it refuses", LOG, log(5, [9_000, 1])],
  ["a log whose count is too small, when entries have expired", LOG, log(2, [61_000, 3], [9_000, 1])],
  ["a log whose entries are not in order, before it refuses", LOG, log(5, [9_000, 2], [19_000, 3])],
  ["a log with a count and no entries", LOG, log(5)],
  ["a log with entries and no count", LOG, log(0, [9_000, 1])],
  ["a log with a previous window", LOG, log(1, [9_000, 1]).replace(":0:", ":1:")],
  ["a token bucket with a remainder of more than one unit", LEVEL, `w:${NOW_MS}:${MINUTE_MS + 1}:1`],
  ["a bucket with periodic refill and a fraction of a unit", PERIODIC, `w:${START_MS}:1:1`],
  ["a penalty with a last refusal, but on no step", PENALTY, `w:${NOW_MS}:2:3`],
  ["a penalty with an invalid block", PENALTY, `w:${NOW_MS}:${2 ** 48 + 3}:3`],
  ["a manual block of more than a leap year", PENALTY, `w:${NOW_MS}:31622400001:0`],
  ["a manual block of more than a leap year on a step", PENALTY, `w:${NOW_MS}:${2 ** 48 + 31622400001}:0`],
  ["a penalty with more refusals than are ever counted", PENALTY, `w:${NOW_MS}:0:9007199254740991`],
]

async function set(key: string, value: Row[2]): Promise<void> {
  if (typeof value === "string") await client.set(key, value)
  else await client.hset(key, value)
  await client.pexpire(key, TTL_MS)
}

async function contentOf(key: string): Promise<unknown> {
  return (await client.type(key)) === "hash" ? client.hgetall(key) : client.get(key)
}

describe("a key that contains", () => {
  it.each(REFUSED.map(([what, policy, value, cost = 1]) => ({ what, policy, value, cost })))(
    "$what causes only its own request to fail, and remains unchanged",
    async ({ policy, value, cost }) => {
      const key = keyNamer("")(check(policy, cost))
      const other: Check = { ...check(SLIDING, 1), partition: "bob" }
      await set(key, value)
      await expect(store.take([check(policy, cost)])).rejects.toMatchObject(INVALID)
      // Take the corrupt counter in one call with another request, which is decided. Then take it in one request with
      // another check.
      const [own, together] = [store.take([check(policy, cost)]), store.take([other])]
      await expect(own).rejects.toMatchObject(INVALID)
      expect(await together).toMatchObject({ granted: true })
      for (const checks of [
        [check(policy, cost), other],
        [other, check(policy, cost)],
      ])
        await expect(store.take(checks)).rejects.toMatchObject(INVALID)
      expect(await contentOf(key)).toEqual(value)
      expect(await client.pttl(key)).toBeLessThanOrEqual(TTL_MS)
    },
  )

  it.each([
    ["token bucket", LEVEL, NOW_MS],
    ["bucket with periodic refill", PERIODIC, START_MS],
  ] as const)("a %s whose debt exceeds a year's quota counts as full", async (_what, policy, startMs) => {
    const most = 5 + 5 * 366 * 24 * 60
    const key = keyNamer("")(check(policy, 1))
    for (const [owed, current] of [
      [most, most],
      [most + 1, 5],
      [Number.MAX_SAFE_INTEGER, 5],
    ] as const) {
      await set(key, `w:${startMs}:0:${owed}`)
      const answer = await store.take([check(policy, 1)])
      expect(answer).toMatchObject({ granted: false, checks: [{ state: { current, previous: 0 } }] })
      if (owed > most) expect(await client.pttl(key)).toBeLessThanOrEqual(MINUTE_MS)
    }
  })

  // If a key has a TTL, such a state can only exist because the clock went back.
  it.each([
    ["two windows", SLIDING, packed(0, 5, 20)],
    ["a strict window", STRICT, strict(20, 0, 5, "")],
  ])("%s from the distant past counts as expired if the key has no TTL", async (_what, policy, value) => {
    const key = keyNamer("")(check(policy, 1))
    await set(key, value)
    expect(await store.take([check(policy, 1)])).toMatchObject({ granted: false })
    await client.del(key)
    await set(key, value)
    await client.persist(key)
    expect(await store.take([check(policy, 1)])).toMatchObject({ granted: true })
    expect(await client.pttl(key)).toBeGreaterThan(0)
  })
})
