import { peekStore } from "@sluice/core/stores"
import { expect, it } from "vitest"
import { SLIDING } from "../../packages/contracts/src/store/asking.ts"
import type { Policy } from "../../packages/core/src/ground/policy.ts"
import type { Check, Refund, Store } from "../../packages/core/src/stores/store.ts"
import { redisStore } from "../../packages/redis/src/redis-store.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"

const MONTH: Policy = { ...SLIDING, limit: 100_000, windowMs: 30 * 86_400_000 }
const FIXED: Policy = { ...MONTH, counter: "fixed000", algorithm: "fixed-window" }

const { client } = await redisForTests()

async function took(store: Store, policy: Policy, partition: string, cost: number): Promise<Refund> {
  const check: Check = { policy, partition, cost, shadow: false }
  const answer = await store.take([check], 20_000)
  const [taken] = answer?.checks ?? []
  if (taken === undefined) throw new Error("the store did not tell what was counted")
  return { policy, partition, units: 1, after: taken.state }
}

async function counted(store: Store, policy: Policy, partition: string): Promise<number | undefined> {
  const answer = await peekStore(store, [{ policy, partition, cost: 1, shadow: false }])
  return answer?.checks[0]?.state.current
}

async function scriptCalls(): Promise<number> {
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(await client.info("commandstats"))?.[1] ?? 0)
}

it("8,000 concurrent refunds are batched into few calls, and each refund changes its own counter", async () => {
  const store = redisStore({ client, prefix: "many:", timeoutMs: 20_000 })
  const shared = await took(store, MONTH, "ann", 5_000)
  const fixed = await took(store, FIXED, "ann", 3_500)
  const others = await Promise.all(Array.from({ length: 10 }, (_, i) => took(store, MONTH, `${i}`, 400)))
  const before = await scriptCalls()
  const refunds = Array.from({ length: 8_000 }, (_, i) => {
    return i % 2 === 0 ? shared : i % 4 === 1 ? fixed : (others[i % 10] as Refund)
  })
  await Promise.all(refunds.map((refund) => store.refund([refund])))
  const calls = (await scriptCalls()) - before
  expect(calls).toBeGreaterThanOrEqual(8_000 / 64)
  expect(calls).toBeLessThan(8_000 / 64 + 10)
  expect(await counted(store, MONTH, "ann")).toBe(1_000)
  expect(await counted(store, FIXED, "ann")).toBe(1_500)
  const left = await Promise.all(others.map((_, i) => counted(store, MONTH, `${i}`)))
  // Indexes that are 3 more than a multiple of 4 are odd, so only odd counters were refunded.
  expect(left).toEqual([400, 0, 400, 0, 400, 0, 400, 0, 400, 0])
  store.close()
})
