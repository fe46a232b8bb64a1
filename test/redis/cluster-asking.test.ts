import { afterAll, beforeAll, expect, it } from "vitest"
import { keyNamer } from "../../packages/redis/src/key.ts"
import { redisStore } from "../../packages/redis/src/redis-store.ts"
import type { RedisServer } from "../servers/redis-server.ts"
import { until } from "../servers/until.ts"
import { clusterForTests } from "./cluster-for-tests.ts"
import { MONTHLY_CHECK } from "./monthly-check.ts"
import { startSlotMove } from "./slot-move.ts"

const { cluster, clients } = await clusterForTests({ primaries: 3 })
const unhandled: unknown[] = []
const note = (reason: unknown) => void unhandled.push(reason)
beforeAll(() => void process.on("unhandledRejection", note))
afterAll(() => void process.off("unhandledRejection", note))

/** Returns how often a node has redirected clients to the node that a slot is moving to. */
async function asksBy(node: RedisServer): Promise<number> {
  return Number(/errorstat_ASK:count=(\d+)/.exec(String(await node.command("INFO", "errorstats")))?.[1] ?? 0)
}

it("only requests in flight to a node fail if it dies while a slot moves to it", async () => {
  const stores = clients.map(({ client }) => redisStore({ client, denyCacheMs: 0, timeoutMs: 20_000 }))
  const take = (store: (typeof stores)[number]) => store.take([MONTHLY_CHECK])
  for (const store of stores) expect(await take(store)).toMatchObject({ granted: true })
  const key = keyNamer("")(MONTHLY_CHECK)
  const from = await cluster.primaryOf(key)
  const { to, move } = await startSlotMove(cluster, key)
  await move(key)
  for (const store of stores) expect(await take(store)).toMatchObject({ granted: true })

  const before = await asksBy(from)
  to.freeze()
  const asked = Promise.allSettled(stores.map(take))
  await until("all have been sent there", async () => (await asksBy(from)) === before + stores.length)
  // Requests that are in flight to the frozen node are lost when the node is killed.
  await new Promise((resolve) => setTimeout(resolve, 50))
  await to.kill()
  const codes = (await asked).map((outcome) => outcome.status === "rejected" && outcome.reason.code)
  expect(codes).toEqual(stores.map(() => "SLUICE_STORE_UNAVAILABLE"))
  await new Promise(setImmediate)
  expect(unhandled).toEqual([])
  for (const store of stores) await store.close()
})
