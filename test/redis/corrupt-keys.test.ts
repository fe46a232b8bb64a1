import fc from "fast-check"
import type { Redis } from "ioredis"
import { beforeAll, describe, expect, it } from "vitest"
import { YEAR_MS } from "../../packages/core/src/algorithms/most-in-use.ts"
import type { Decision } from "../../packages/core/src/decision/decision.ts"
import type { Clock } from "../../packages/core/src/ground/clock.ts"
import { manualClock } from "../../packages/core/src/ground/manual-clock.ts"
import { ceilingOf, type Policy } from "../../packages/core/src/ground/policy.ts"
import { createLimiter } from "../../packages/core/src/limiter/create-limiter.ts"
import type { Limiter } from "../../packages/core/src/limiter/interface/limiter.ts"
import { KINDS_OF_RULE } from "../../packages/core/src/limiter/rule-set/testing/kinds-of-rule.ts"
import type { RateRule } from "../../packages/core/src/rules/rule.ts"
import type { Store } from "../../packages/core/src/stores/store.ts"
import { methodsOf } from "../../packages/core/src/stores/testing/methods-of.ts"
import { keyNamer } from "../../packages/redis/src/key.ts"
import { redisStore } from "../../packages/redis/src/redis-store.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { examples } from "../test-length.ts"
import { contents, write } from "./corrupt-contents.ts"
import { loadScripts } from "./play.ts"

const HOUR_MS = 3_600_000
const LARGEST = Number.MAX_SAFE_INTEGER
const LIMIT = 5
/** An instant at which half of a window and half of a sub-window have passed. */
const NOW_MS = Date.UTC(2024, 0, 1) + 1_830_500
const SEED = 22_001
const RUNS = examples(7, 20)

type Request = { readonly who: string }

/** Each kind of counter, with the members of a rule that uses this kind. */
const KINDS: readonly (readonly [name: string, members: Partial<RateRule>])[] = [
  ...KINDS_OF_RULE.map(([name, members]) => [name, withHard(members)] as const),
  ["sliding-window that counts refusals", { countRejected: true }],
  ["sliding-window-strict that counts refusals", { algorithm: "sliding-window-strict", countRejected: true }],
  ["sliding-log that counts refusals", { algorithm: "sliding-log", countRejected: true }],
  [
    "soft sliding-window-strict",
    { algorithm: "sliding-window-strict", throttle: { kind: "soft", percent: 100 } },
  ],
  ["penalty", { penalty: { refusals: 2, within: "1h", for: "2h" } }],
]

function withHard(members: Partial<RateRule>): Partial<RateRule> {
  return members.algorithm === "leaky-bucket" ? { ...members, throttle: "hard" } : members
}

const { client } = await redisForTests()
let made = 0
beforeAll(() => loadScripts(client))

/**
 * Creates a limiter, and the key names of the counters of the client "ann". With a penalty, the client has two
 * counters.
 */
async function open(members: Partial<RateRule>, clock?: Clock) {
  const prefix = `${made++}:`
  const inner = redisStore({ client, prefix, denyCacheMs: 0, timeoutMs: 20_000, ...(clock && { clock }) })
  const asked = new Map<string, Policy>()
  const nameKey = keyNamer(prefix)
  const store: Store = {
    ...methodsOf(inner),
    isShared: true,
    take: (checks, withinMs) => {
      for (const check of checks) asked.set(nameKey(check), check.policy)
      return inner.take(checks, withinMs)
    },
  }
  const limiter = createLimiter<Request>({
    service: "corrupt",
    rules: [{ name: "rule", limit: LIMIT, window: HOUR_MS, field: "who", ...members }],
    fields: { who: ({ who }) => who },
    store,
    ...(clock && { clock }),
    storeTimeoutMs: 20_000,
    logger: { warn: () => undefined, error: () => undefined },
  })
  await limiter.decide({ who: "ann" })
  const keys = [...asked.keys()]
  await client.del(...keys)
  const policies = [...asked.values()]
  return { limiter, prefix, keys, policies, close: () => limiter.close() }
}

/** Expects that every number of a decision is valid in a header, and that no number exceeds the rule. */
function expectSound(decision: Decision): void {
  const numbers: number[] = [
    decision.remaining,
    decision.retryAfterMs,
    decision.resetAfterMs,
    decision.delayMs,
  ]
  for (const { remaining, retryAfterMs, nextUnitAfterMs, resetAfterMs, delayMs, counts } of decision.checks) {
    numbers.push(remaining as number, retryAfterMs, nextUnitAfterMs, resetAfterMs, delayMs)
    if (counts !== undefined) numbers.push(counts.startMs, counts.current, counts.previous)
  }
  for (const number of numbers)
    expect([number, number >= 0, Number.isFinite(number)]).toEqual([number, true, true])
  expect(decision.remaining).toBeLessThanOrEqual(2 * LIMIT)
}

/** Calls all methods with which a limiter changes or reads counters, together with requests of another client. */
async function useAll(limiter: Limiter<Request>): Promise<void> {
  for (const costs of [[1], [1, 1, 1], [LIMIT, 1]]) {
    const [innocent, ...decisions] = await Promise.all([
      limiter.peek({ who: "innocent" }),
      ...costs.map((cost) => limiter.decide({ who: "ann" }, { cost })),
    ])
    expect(innocent.degraded).toBe(false)
    for (const decision of decisions) expectSound(decision)
    const both = await Promise.all([
      limiter.decide({ who: "bob" }, { cost: 0 }),
      limiter.decide({ who: "ann" }),
    ])
    expect(both[0].degraded).toBe(false)
    expectSound(both[1])
    if (both[1].allowed) await limiter.refund(both[1])
    else expectSound(await limiter.peek({ who: "ann" }))
  }
  const charged = await limiter.decide({ who: "ann" }, { cost: 1 })
  if (charged.allowed) await limiter.settle(charged, 3)
  expectSound(await limiter.peek({ who: "ann" }))
}

/**
 * Sends concurrent requests. Returns how many requests were admitted, and whether any request was decided without
 * Redis.
 */
async function burst(limiter: Limiter<Request>) {
  const decisions = await Promise.all(Array.from({ length: 4 * LIMIT }, () => limiter.decide({ who: "ann" })))
  for (const decision of decisions) expectSound(decision)
  return {
    admitted: decisions.filter(({ allowed }) => allowed).length,
    isDegraded: decisions.some(({ degraded }) => degraded),
  }
}

/** Returns the longest time for which a counter of the policy can matter. No TTL that the store sets is longer. */
function longestMs({ algorithm, windowMs, penalty }: Policy): number {
  if (algorithm === "token-bucket" || algorithm === "leaky-bucket") return YEAR_MS + 3 * windowMs
  // Use a year for every penalty, because an operator may block a client for a leap year.
  return penalty === undefined ? 2 * windowMs : YEAR_MS
}

describe.each(KINDS)("a key of a %s", (_name, members) => {
  it("that contains the largest possible count does not get a longer TTL", async () => {
    const { limiter, keys, close } = await open(members)
    const nowMs = await timeOf(client)
    for (const startMs of [nowMs, nowMs - (nowMs % HOUR_MS)]) {
      for (const key of keys) await write(client, key, { text: `w:${startMs}:0:${LARGEST}` }, 60_000)
      for (let i = 0; i < 3; i++) expectSound(await limiter.decide({ who: "ann" }))
      expectSound(await limiter.peek({ who: "ann" }))
      for (const key of keys) expect(await client.pttl(key)).toBeLessThanOrEqual(2 * HOUR_MS)
    }
    await close()
  })

  it("is repaired or rejected whatever it contains, and never lives longer than the rule needs", async () => {
    const { limiter, prefix, keys, policies, close } = await open(members)
    const mostMs = Math.max(...policies.map(longestMs))
    const property = fc.asyncProperty(
      contents(await timeOf(client), policies),
      fc.constantFrom(60_000, 60_000, 5 * HOUR_MS, undefined),
      async (content, ttlMs) => {
        await client.del(prefix, ...(await client.keys(`${prefix}*`)))
        for (const key of keys) await write(client, key, content, ttlMs)
        await useAll(limiter)
        for (const key of keys) {
          const leftMs = await client.pttl(key)
          // A key that another program wrote without a TTL gets a TTL only if the store writes the key.
          if (ttlMs !== undefined) expect(leftMs).not.toBe(-1)
          expect(leftMs).toBeLessThanOrEqual(Math.max(ttlMs ?? 0, mostMs))
        }
      },
    )
    await fc.assert(property, { seed: SEED, numRuns: RUNS })
    await close()
  })

  it("neither locks out a client nor disables the limit for longer than the rule itself could", async () => {
    const { policies, close } = await open(members)
    await close()
    const most = ceilingOf(policies[0] as Policy)
    const mostMs = Math.max(...policies.map(longestMs))
    const property = fc.asyncProperty(contents(NOW_MS, policies), async (content) => {
      const clock = manualClock(NOW_MS)
      const { limiter, keys, close } = await open(members, clock)
      // Write without a TTL, so that a key expires only if the store sets a TTL.
      for (const key of keys) await write(client, key, content)
      // Redis may admit `most` requests, and the fallback may admit `most` more.
      expect((await burst(limiter)).admitted).toBeLessThanOrEqual(2 * most)
      clock.advance(mostMs + 1)
      for (const key of keys) if ((await client.pttl(key)) >= 0) await client.del(key)
      const { admitted, isDegraded } = await burst(limiter)
      if (!isDegraded) {
        expect(admitted).toBe(most)
        for (const key of keys) expect(await client.pttl(key)).not.toBe(-1)
      } else {
        expect(admitted).toBeGreaterThanOrEqual(most)
        expect(admitted).toBeLessThanOrEqual(2 * most)
      }
      await close()
    })
    await fc.assert(property, { seed: SEED, numRuns: RUNS })
  })
})

/** Returns the server's time in milliseconds. */
async function timeOf(server: Redis): Promise<number> {
  const [seconds] = await server.time()
  return Number(seconds) * 1_000
}
