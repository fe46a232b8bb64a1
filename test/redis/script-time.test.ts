import { Redis } from "ioredis"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { SLIDING } from "../../packages/contracts/src/store/asking.ts"
import type { Policy } from "../../packages/core/src/ground/policy.ts"
import {
  type CallTime,
  kindOf,
  PolicyTable,
} from "../../packages/core/src/stores/redis/scripts/script-input.ts"
import { PEEK, REFUND, TAKE } from "../../packages/core/src/stores/redis/scripts.ts"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"

let server: RedisServer
let client: Redis
beforeAll(async () => {
  server = await startRedis()
  client = new Redis(server.port, server.host)
})
afterAll(async () => {
  client?.disconnect()
  await server?.stop()
})
beforeEach(async () => {
  await client.flushall()
})

const KEY = "key"
const NOW_MS = Date.UTC(2024, 0, 1)
const STRICT: Policy = { ...SLIDING, algorithm: "sliding-window-strict", buckets: 60 }

/** Takes three units with the script's own list of numbers. */
async function take(time: Partial<CallTime>, policy: Policy = SLIDING): Promise<number[]> {
  return run(TAKE.text, time, policy, (number) => [1, 1, 1, number, 3])
}

/** Takes three units with the fast path for a call with one check. */
async function takeOne(untilMs: number, policy: Policy): Promise<number[]> {
  const numbers = [
    untilMs,
    policy.windowMs,
    policy.limit,
    3,
    kindOf(policy),
    1,
    3,
    policy.buckets ?? 0,
    NOW_MS,
  ]
  return (await client.eval(TAKE.text, 1, KEY, ...numbers)) as number[]
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
  ])("counts nothing in %s, while one that arrives in the last millisecond counts", async (_what, policy) => {
    expect(await take(late, policy)).toEqual([NOW_MS])
    expect(await takeOne(NOW_MS - 1, policy)).toEqual([NOW_MS])
    expect(await client.exists(KEY)).toBe(0)
    expect(await take(inTime, policy)).toHaveLength(2)
    expect(await takeOne(NOW_MS, policy)).toHaveLength(2)
    expect(await client.exists(KEY)).toBe(1)
  })

  it("refunds nothing", async () => {
    await take(inTime)
    const held = await client.get(KEY)
    const refund = (time: Partial<CallTime>) =>
      run(REFUND.text, time, SLIDING, (number) => [number, 2, NOW_MS, 3, 0])
    expect(await refund(late)).toEqual([NOW_MS])
    expect(await client.get(KEY)).toBe(held)
    expect(await refund(inTime)).toEqual([NOW_MS, 1])
    expect(await client.get(KEY)).not.toBe(held)
  })
})

it("a call without a time is decided by the server's time, to the millisecond", async () => {
  const serverMs = async () => {
    const [seconds, microseconds] = await client.time()
    return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000)
  }
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
