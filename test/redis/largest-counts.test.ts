import { peekStore } from "@sluice/core/stores"
import { describe, expect, it } from "vitest"
import { type ManualClock, manualClock } from "../../packages/core/src/ground/clock.ts"
import type { Policy } from "../../packages/core/src/ground/policy.ts"
import { memoryStore } from "../../packages/core/src/stores/memory/memory-store.ts"
import type { Store } from "../../packages/core/src/stores/store.ts"
import { redisStore } from "../../packages/redis/src/redis-store.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"

const { client } = await redisForTests()

const MOST = Number.MAX_SAFE_INTEGER
const SHARED = { counter: "counter", align: "epoch", limit: MOST - 1, windowMs: 3_600_000 } as const
const EACH: readonly Policy[] = [
  { ...SHARED, name: "log", algorithm: "sliding-log" },
  { ...SHARED, name: "strict", algorithm: "sliding-window-strict", buckets: 4 },
  { ...SHARED, name: "buckets", algorithm: "sliding-window", buckets: 4 },
]

describe("counts just below 2^53, packed in digits", () => {
  it.each(EACH)("are read and refunded to the exact unit: $name", async (policy) => {
    const states = []
    for (const open of [memoryIn, redisIn]) {
      const clock = manualClock()
      const store = open(clock, policy.name)
      const check = { policy, partition: "alice", shadow: false }
      const answer = await store.take([{ ...check, cost: MOST - 2 }])
      const after = answer?.checks[0]?.state
      if (after === undefined) throw new Error("the store has told nothing")
      clock.advance(policy.windowMs / 4)
      for (const units of [2, 2]) await store.refund([{ policy, partition: "alice", units, after }])
      const look = await peekStore(store, [{ ...check, cost: 0 }])
      states.push(look?.checks[0]?.state)
      await store.close()
    }
    const [expected, told] = states
    expect(expected).toMatchObject({ parts: expect.stringMatching(/./) })
    expect(told).toEqual(expected)
  })
})

function memoryIn(clock: ManualClock): Store {
  return memoryStore({ clock })
}

function redisIn(clock: ManualClock, prefix: string): Store {
  return redisStore({ client, clock, prefix, denyCacheMs: 0, timeoutMs: 20_000 })
}
