import fc from "fast-check"
import { beforeAll, describe, expect, it } from "vitest"
import type { Decision } from "../../packages/core/src/index.ts"
import { createLimiter } from "../../packages/core/src/limiter/create-limiter.ts"
import type { Limiter } from "../../packages/core/src/limiter/interface/limiter.ts"
import { manualClock } from "../../packages/core/src/testing.ts"
import { RedisStore } from "../../packages/redis/src/redis-store.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { examples } from "../test-length.ts"
import {
  type LimiterStep,
  type LimiterTrace,
  limiterTraces,
  type TracedRequest,
} from "./deny-cache-traces.ts"
import { KeysOnAClock } from "./keys-on-a-clock.ts"
import { loadScripts } from "./play.ts"

const DENY_CACHE_MS = 10_000
const SEED = 5_001
const TRACES = examples(15, 50)

const { client } = await redisForTests()
let made = 0
let calls = { on: 0, off: 0 }

beforeAll(() => loadScripts(client))

describe("the deny cache", () => {
  it.each([
    { slots: "one slot", isCluster: false },
    { slots: "several slots", isCluster: true },
  ])("does not change any member of a decision whose counters are in $slots", async ({ isCluster }) => {
    calls = { on: 0, off: 0 }
    const property = fc.asyncProperty(limiterTraces(), (trace) => play(trace, isCluster))
    await fc.assert(property, { seed: SEED, numRuns: TRACES })
    // The test is meaningful only if the cache has decided some requests, so with the cache, the traces must need
    // fewer Redis calls.
    expect(calls.on).toBeLessThan(0.8 * calls.off)
  })
})

/**
 * Plays a trace with the deny cache on and off, and expects equal results after each step. With `isCluster`, the
 * counters of each slot are sent in a separate call.
 */
async function play({ rules, startMs, steps }: LimiterTrace, isCluster: boolean): Promise<void> {
  const clock = manualClock(startMs)
  const trace = made++
  const open = (name: "on" | "off") => {
    const keys = new KeysOnAClock(client, clock)
    const denyCacheMs = name === "on" ? DENY_CACHE_MS : 0
    const commands = { ...keys.commands, isCluster }
    const store = new RedisStore({
      commands,
      prefix: `${trace}${name}:`,
      denyCacheMs,
      timeoutMs: 20_000,
      clock,
    })
    const limiter = createLimiter<TracedRequest>({
      service: "trace",
      rules: [...rules],
      fields: { who: (request) => request.who },
      store,
      storeTimeoutMs: 20_000,
      clock,
    })
    return { name, keys, store, limiter, decisions: [] as Decision[] }
  }
  const both = [open("on"), open("off")] as const
  try {
    for (const step of steps) {
      clock.set(Math.max(startMs, clock.now() + step.afterMs))
      const [on, off] = [await carryOut(step, both[0]), await carryOut(step, both[1])]
      expect(off.some(({ degraded }) => degraded)).toBe(false)
      expect(off.flatMap(({ checks }) => checks).every(({ ageMs }) => ageMs === 0)).toBe(true)
      expect(on.map(withoutAge)).toStrictEqual(off.map(withoutAge))
    }
  } finally {
    for (const { name, keys, limiter, store } of both) {
      calls[name] += keys.calls
      await limiter.close()
      store.close()
    }
  }
}

/** Returns the decision without the age of its counts. Only this member shows whether the cache has decided. */
function withoutAge(decision: Decision) {
  return { ...decision, checks: decision.checks.map(({ ageMs: _, ...check }) => check) }
}

interface Played {
  readonly keys: KeysOnAClock
  readonly limiter: Limiter<TracedRequest>
  readonly decisions: Decision[]
}

async function carryOut(
  step: LimiterStep,
  { keys, limiter, decisions }: Played,
): Promise<readonly Decision[]> {
  const { request } = step
  switch (step.kind) {
    case "decide": {
      const made: Decision[] = []
      for (let i = 0; i < step.times; i++) {
        made.push(await limiter.decide(request, { cost: step.cost }))
        await settled(keys)
      }
      decisions.unshift(...made)
      return made
    }
    case "peek":
      return [await limiter.peek(request, { cost: step.cost })]
    case "takeUpTo": {
      const decision = await limiter.takeUpTo(request, step.cost)
      await settled(keys)
      return [decision]
    }
    case "reset":
      await limiter.reset(request, { rules: step.policies })
      return []
    case "refund":
    case "settle": {
      const decision = decisions[step.nth]
      if (decision === undefined) return []
      if (step.kind === "refund") await limiter.refund(decision)
      else await limiter.settle(decision, step.units)
      return []
    }
  }
}

/** Waits until Redis has replied to every call. This includes refunds in earlier slots, for which no decision waits. */
async function settled(keys: KeysOnAClock): Promise<void> {
  for (let calls = Number.NaN; calls !== keys.calls; ) {
    calls = keys.calls
    await client.ping()
  }
}
