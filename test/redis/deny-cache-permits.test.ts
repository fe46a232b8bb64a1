import fc from "fast-check"
import { beforeAll, describe, expect, it } from "vitest"
import { type ManualClock, manualClock } from "../../packages/core/src/ground/manual-clock.ts"
import type { Policy } from "../../packages/core/src/ground/policy.ts"
import type { Check, Counted, Refund, StoreResult } from "../../packages/core/src/stores/store.ts"
import { RedisStore } from "../../packages/redis/src/redis-store.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { examples } from "../test-length.ts"
import { KeysOnAClock } from "./keys-on-a-clock.ts"
import { loadScripts } from "./play.ts"

const SEED = 6_001
const TRACES = examples(40, 200)
const DENY_CACHE_MS = 10_000
const START_MS = Date.UTC(2024, 0, 1)

const RATE: Policy = {
  name: "rate",
  counter: "rate",
  algorithm: "sliding-window",
  limit: 3,
  windowMs: 4_000,
  align: "epoch",
}
const BUCKET: Policy = { ...RATE, name: "bucket", counter: "bucket", algorithm: "token-bucket", burst: 4 }
const PERMITS: Policy = { ...RATE, name: "permits", counter: "permits", algorithm: "in-flight", limit: 2 }
const PENALTY: Policy = {
  ...RATE,
  name: "penalty",
  counter: "penalty",
  algorithm: "penalty",
  penalty: { refusals: 3, withinMs: 4_000, forMs: [2_000, 6_000] },
}
/** The policies of each kind of request. A penalty counts the refusals of the policy before it. */
const REQUESTS: readonly (readonly Policy[])[] = [
  [RATE],
  [PERMITS],
  [RATE, PERMITS],
  [PERMITS, RATE],
  [PERMITS, BUCKET, RATE],
  [RATE, PENALTY, PERMITS],
  [RATE, PERMITS, PENALTY],
  [PERMITS, { ...PENALTY, counter: "other" }, RATE],
]

type Step = { readonly afterMs: number } & (
  | { readonly take: readonly Check[]; readonly times: number }
  /** `nth` is an index of the permits that were taken so far, counted from the latest. */
  | { readonly nth: number; readonly isRenewal: boolean }
)

const { client } = await redisForTests()
let made = 0

beforeAll(() => loadScripts(client))

function steps(): fc.Arbitrary<readonly Step[]> {
  const afterMs = fc.constantFrom(0, 0, 0, 1, 100, 900, 2_000, 4_000, 9_000, -1_000)
  const cost = fc.constantFrom(1, 1, 1, 2, 0)
  const shadowed = fc.constantFrom(false, false, false, true)
  const take = fc.tuple(fc.constantFrom(...REQUESTS), cost, shadowed).map(([policies, units, isShadow]) =>
    policies.map(
      (policy): Check => ({
        policy,
        partition: "ann",
        cost: policy.algorithm === "penalty" ? 1 : units,
        shadow: isShadow && policy === PERMITS,
      }),
    ),
  )
  return fc.array(
    fc.oneof(
      { weight: 5, arbitrary: fc.record({ afterMs, take, times: fc.constantFrom(1, 2, 4) }) },
      { weight: 2, arbitrary: fc.record({ afterMs, nth: fc.nat(3), isRenewal: fc.boolean() }) },
    ),
    { minLength: 5, maxLength: 40, size: "max" },
  )
}

/** Returns the counters other than permits. Also returns the permits unless the cache has decided. */
function comparable(checks: readonly Check[], on: StoreResult, shown: StoreResult) {
  const counted = shown.checks.map((one, i) => {
    if (on.isRemembered === true && checks[i]?.policy === PERMITS) return "not read"
    const { state, taken } = one as Counted
    return { state, taken }
  })
  return { nowMs: shown.nowMs, granted: shown.granted, counted }
}

function permitsIn(counted: Counted | undefined): readonly Refund[] {
  if (counted?.taken !== 1) return []
  return [{ policy: PERMITS, partition: "ann", units: 1, after: counted.state }]
}

/** Plays a trace with the deny cache on and off. Returns how many calls of Redis each of them has made. */
async function play(all: readonly Step[]): Promise<readonly [on: number, off: number]> {
  const clock: ManualClock = manualClock(START_MS)
  const open = (denyCacheMs: number) => {
    const keys = new KeysOnAClock(client, clock)
    const prefix = `${made++}:`
    const store = new RedisStore({ commands: keys.expiring, prefix, denyCacheMs, timeoutMs: 20_000, clock })
    return { keys, store, held: [] as Refund[] }
  }
  const [on, off] = [open(DENY_CACHE_MS), open(0)]
  for (const step of all) {
    clock.set(Math.max(START_MS, clock.now() + step.afterMs))
    if ("nth" in step) {
      for (const { store, held } of [on, off]) {
        const one = held[step.nth]
        if (one !== undefined) await store.refund([{ ...one, units: step.isRenewal ? -1 : 1 }])
      }
      continue
    }
    const { take: checks, times } = step
    const permits = checks.findIndex(({ policy }) => policy === PERMITS)
    for (let i = 0; i < times; i++) {
      const result = await on.store.take(checks)
      const expected = await off.store.take(checks)
      expect(comparable(checks, result, result)).toEqual(comparable(checks, result, expected))
      if (result.isRemembered === true) expect(result.checks[permits]).toBeUndefined()
      on.held.unshift(...permitsIn(result.checks[permits]))
      off.held.unshift(...permitsIn(expected.checks[permits]))
    }
  }
  on.store.close()
  off.store.close()
  return [on.keys.calls, off.keys.calls]
}

describe("the deny cache", () => {
  it("changes no result of requests that also need permits, except that it does not read the permits", async () => {
    let [withCache, without] = [0, 0]
    const property = fc.asyncProperty(steps(), async (all) => {
      const [on, off] = await play(all)
      withCache += on
      without += off
    })
    await fc.assert(property, { seed: SEED, numRuns: TRACES })
    // The test is meaningful only if the cache has decided some requests. It never decides a refusal by permits.
    expect(withCache).toBeLessThan(0.9 * without)
  })
})
