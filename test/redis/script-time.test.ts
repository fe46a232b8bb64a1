import { Redis } from "ioredis"
import { beforeEach, describe, expect, it } from "vitest"
import { SLIDING } from "../../packages/contracts/src/store/asking.ts"
import type { Policy } from "../../packages/core/src/ground/policy.ts"
import { type CallTime, PolicyTable } from "../../packages/redis/src/scripts/script-input.ts"
import { TakeCall, type TakeReply } from "../../packages/redis/src/scripts/take-call.ts"
import { PEEK, REFUND, TAKE } from "../../packages/redis/src/scripts.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"

const { server, client } = await redisForTests()
beforeEach(() => client.flushall())

const KEY = "key"
const NOW_MS = Date.UTC(2024, 0, 1)
const STRICT: Policy = { ...SLIDING, algorithm: "sliding-window-strict", buckets: 60 }

/** Takes three units with the script's own list of numbers. */
async function take(time: Partial<CallTime>, policy: Policy = SLIDING): Promise<number[]> {
  return run(TAKE.text, time, policy, (number) => [1, 1, 1, number, 3])
}

/** Takes three units with the fast path for a call with one check. */
async function takeOne(
  time: Partial<CallTime>,
  policy: Policy,
  by = client,
): Promise<TakeReply & { reply: unknown }> {
  const call = new TakeCall()
  call.add({ checks: [{ policy, partition: "", cost: 3, shadow: false }], keys: [KEY] })
  const args = call.args({ nowMs: undefined, untilMs: undefined, isWide: false, ...time })
  const reply = await by.eval(TAKE.text, 1, KEY, ...args)
  return { ...call.read(reply), reply }
}

async function run(
  script: string,
  time: Partial<CallTime>,
  policy: Policy,
  rest: (number: number) => number[],
): Promise<number[]> {
  const policies = new PolicyTable()
  const number = policies.numberOf(policy)
  const call = { nowMs: undefined, untilMs: undefined, isWide: false, ...time }
  return (await client.eval(script, 1, KEY, policies.input(call, rest(number)))) as number[]
}

describe("a call that reaches the server after its deadline", () => {
  const late = { nowMs: NOW_MS, untilMs: NOW_MS - 1 }
  const inTime = { nowMs: NOW_MS, untilMs: NOW_MS }

  it.each([
    ["two windows", SLIDING],
    ["a strict window", STRICT],
  ])(
    "counts nothing in %s, unlike a call that arrives a millisecond before its deadline",
    async (_what, policy) => {
      expect(await take(late, policy)).toEqual([NOW_MS])
      expect((await takeOne(late, policy)).answers).toBeUndefined()
      expect(await client.exists(KEY)).toBe(0)
      expect(await take(inTime, policy)).toHaveLength(2)
      expect((await takeOne(inTime, policy)).answers).toHaveLength(1)
      expect(await client.exists(KEY)).toBe(1)
    },
  )

  it("refunds nothing", async () => {
    await take(inTime)
    const held = await client.get(KEY)
    const refund = (time: Partial<CallTime>) =>
      run(REFUND.text, time, SLIDING, (number) => [1, number, 2, NOW_MS, 3, 0])
    expect(await refund(late)).toEqual([NOW_MS])
    expect(await client.get(KEY)).toBe(held)
    expect(await refund(inTime)).toEqual([NOW_MS, 1])
    expect(await client.get(KEY)).not.toBe(held)
  })
})

async function serverMs(): Promise<number> {
  const [seconds, microseconds] = await client.time()
  return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000)
}

describe("a call with one check on the server's clock", () => {
  const DAY: Policy = { ...SLIDING, windowMs: 30 * 24 * 3_600_000, limit: 7 }

  it.each([
    { what: "an integer", afterMs: 2_045, isList: false },
    { what: "a list, if the integer could be too large", afterMs: 3_000, isList: true },
  ])("returns the time of the decision as $what", async ({ afterMs, isList }) => {
    for (let i = 0; i < 5; i++) {
      const beforeMs = await serverMs()
      const { nowMs, reply } = await takeOne({ untilMs: beforeMs + afterMs }, { ...DAY, limit: 100 })
      expect(Array.isArray(reply)).toBe(isList)
      expect(nowMs).toBeGreaterThanOrEqual(beforeMs)
      expect(nowMs).toBeLessThanOrEqual(await serverMs())
    }
  })
})

describe("a call with one check that begins a window", () => {
  it("counts the previous window's share exactly to the millisecond", async () => {
    const nine: Policy = { ...SLIDING, windowMs: 9_000, limit: 9 }
    const startMs = NOW_MS - (NOW_MS % nine.windowMs)
    for (let i = 0; i < 3; i++) await takeOne({ nowMs: startMs }, nine)
    const grantedAt = async (nowMs: number) => (await takeOne({ nowMs }, nine)).answers?.[0]?.granted
    // Of the nine previous units, seven still count at first and six a millisecond later. The request needs three.
    expect(await grantedAt(startMs + 9_000 + 2_000)).toBe(false)
    expect(await grantedAt(startMs + 9_000 + 2_001)).toBe(true)
  })

  it("fails and leaves no key if the Redis user may not set the key's expiry", async () => {
    await client.acl("SETUSER", "limited", "on", ">secret", "~*", "+@all", "-set")
    const limited = new Redis(server.port, server.host, { username: "limited", password: "secret" })
    try {
      const untilMs = (await serverMs()) + 1_000
      // Redis 7.0 does not name the command, and later versions and Valkey do.
      await expect(takeOne({ untilMs }, SLIDING, limited)).rejects.toThrow(
        /can't run this command|no permissions to run the 'set' command/,
      )
      expect(await client.exists(KEY)).toBe(0)
    } finally {
      limited.disconnect()
      await client.acl("DELUSER", "limited")
    }
  })
})

it("a call without a time uses the server's time, exact to the millisecond", async () => {
  for (const script of [TAKE.text, PEEK.text]) {
    const rest = (number: number) => (script === TAKE.text ? [1, 1, 1, number, 3] : [number])
    for (let i = 0; i < 5; i++) {
      const beforeMs = await serverMs()
      const [nowMs] = await run(script, {}, SLIDING, rest)
      expect(nowMs).toBeGreaterThanOrEqual(beforeMs)
      expect(nowMs).toBeLessThanOrEqual(await serverMs())
    }
  }
})
