import { type Check, type Policy, peekStore, refundsOf } from "@sluice/core/stores"
import { describe, expect, it } from "vitest"
import type { Store, StoreResult } from "../../packages/core/src/stores/store.ts"
import { redisStore } from "../../packages/redis/src/redis-store.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { until } from "../servers/until.ts"
import { clusterForTests } from "./cluster-for-tests.ts"
import type { OpenedClient } from "./open-client.ts"

const HOUR_MS = 3_600_000
/** The windows are long, so that none of them ends during a test on the server's clock. */
const RATE: Policy = {
  name: "rate",
  counter: "rate",
  algorithm: "sliding-window",
  limit: 1_000,
  windowMs: 720 * HOUR_MS,
  align: "epoch",
}
const PERMITS: Policy = { ...RATE, name: "permits", counter: "permits", algorithm: "in-flight" }

const { client } = await redisForTests()
const { clients } = await clusterForTests({ primaries: 3 })
let made = 0

function check(policy: Policy, partition: string): Check {
  return { policy, partition, cost: 1, shadow: false }
}

/** Returns the units of each check's counter. */
async function countsOf(store: Store, checks: readonly Check[]): Promise<(number | undefined)[]> {
  const { checks: counted } = await peekStore(
    store,
    checks.map((each) => ({ ...each, cost: 0 })),
  )
  return counted.map((one) => one && one.state.previous + one.state.current)
}

/** Takes each request 60 times concurrently, in two processes. Returns the granted results. */
async function takeMany(stores: readonly Store[], checks: readonly Check[]): Promise<readonly StoreResult[]> {
  const all = stores.flatMap((store) => Array.from({ length: 30 }, async () => store.take(checks)))
  return (await Promise.all(all)).filter(({ granted }) => granted)
}

const onRedis = () =>
  [1, 2].map(() => redisStore({ client, prefix: `p${made}:`, denyCacheMs: 0, timeoutMs: 20_000 }))
const onCluster = () =>
  clients.slice(0, 2).map(({ client: each }: OpenedClient) => {
    return redisStore({ client: each, prefix: `p${made}:`, denyCacheMs: 0, timeoutMs: 20_000 })
  })

describe.each([
  { on: "one server", open: onRedis, shared: "ann" },
  { on: "a cluster, in one slot", open: onCluster, shared: "ann" },
  { on: "a cluster, in several slots", open: onCluster, shared: "" },
])("a request that needs a rate and a permit, on $on", ({ open, shared }) => {
  it("takes no unit of the rate if permits refuse it, and permits come back one by one", async () => {
    made++
    const stores = open()
    const [store] = stores as [Store]
    const checks = [check(RATE, shared), check({ ...PERMITS, limit: 7 }, "ann")]
    const granted = await takeMany(stores, checks)
    expect(granted).toHaveLength(7)
    await until("refused units are back", async () => (await countsOf(store, checks)).join() === "7,7")
    const releases = granted.flatMap(({ checks: counted }) => refundsOf(checks.slice(1), counted.slice(1)))
    await Promise.all(releases.slice(0, 3).map(async (one) => store.refund([one])))
    expect(await countsOf(store, checks)).toEqual([7, 4])
    expect(await takeMany(stores, checks)).toHaveLength(3)
    await until("refused units are back", async () => (await countsOf(store, checks)).join() === "10,7")
    for (const each of stores) await each.close()
  })

  it("takes no permit if the rate refuses it", async () => {
    made++
    const stores = open()
    const [store] = stores as [Store]
    const checks = [check({ ...PERMITS, limit: 50 }, shared), check({ ...RATE, limit: 6 }, "ann")]
    const granted = await takeMany(stores, checks)
    expect(granted).toHaveLength(6)
    await until("refused permits are back", async () => (await countsOf(store, checks)).join() === "6,6")
    const releases = granted.flatMap(({ checks: counted }) =>
      refundsOf(checks.slice(0, 1), counted.slice(0, 1)),
    )
    await Promise.all(releases.map(async (one) => store.refund([one])))
    expect(await countsOf(store, checks)).toEqual([0, 6])
    for (const each of stores) await each.close()
  })
})
