import { peekStore } from "@sluice/core/stores"
import { describe, expect, it } from "vitest"
import type { Policy } from "../../packages/core/src/ground/policy.ts"
import { createLimiter } from "../../packages/core/src/limiter/create-limiter.ts"
import type { Check, Store } from "../../packages/core/src/stores/store.ts"
import { keyNamer } from "../../packages/redis/src/key.ts"
import { redisStore } from "../../packages/redis/src/redis-store.ts"
import { until } from "../servers/until.ts"
import { clusterForTests } from "./cluster-for-tests.ts"
import { admittedIn, lastingKeysIn, limiterOn, loadOn, unitsInCluster } from "./cluster-load.ts"
import { unitsIn } from "./counted.ts"
import { LIBRARIES, type Library, librariesInTurn, type OpenedClient } from "./open-client.ts"
import { startSlotMove } from "./slot-move.ts"

const MONTH = 30 * 24 * 3_600_000

const { cluster, clients } = await clusterForTests({ primaries: 5 })
let made = 0

/** Creates a store on each client, as separate processes would. */
function open(denyCacheMs = 0): { prefix: string; stores: readonly [Store, ...Store[]] } {
  const prefix = `c${made++}:`
  const [first, ...others] = clients.map(({ client }) =>
    redisStore({ client, prefix, denyCacheMs, timeoutMs: 20_000 }),
  )
  return { prefix, stores: [first as Store, ...others] }
}

function policy(counter: string, limit: number): Policy {
  return { name: counter, counter, algorithm: "sliding-window", limit, windowMs: MONTH, align: "epoch" }
}

function check(each: Policy, partition: string): Check {
  return { policy: each, partition, cost: 1, shadow: false }
}

const PER_USER = policy("per-user", 40)
const PER_DEVICE = policy("per-devi", 40)
const OVERALL = policy("over-all", 500)

/** Returns the units of one counter. Must be called when no request is pending. */
async function countOf(store: Store, key: Check): Promise<number> {
  const answer = await peekStore(store, [{ ...key, cost: 0 }])
  return answer?.checks[0]?.state.current ?? Number.NaN
}

describe("requests whose counters are in different slots", () => {
  it("are admitted exactly up to the service's limit under concurrency, and are refunded if they are refused", async () => {
    const { stores, prefix } = open()
    const asked = stores.flatMap((store) =>
      Array.from({ length: 500 }, (_, i) => async () => {
        const answer = await store.take([check(PER_USER, `user-${i % 25}`), check(OVERALL, "")])
        return answer?.granted === true
      }),
    )
    const granted = (await Promise.all(asked.map((ask) => ask()))).filter(Boolean)
    expect(granted).toHaveLength(500)
    // The units of a refused request are refunded only after its reply.
    await until("all is given back", async () => (await unitsInCluster(cluster, prefix)) === 1_000)
    expect(await countOf(stores[0], check(OVERALL, ""))).toBe(500)
  })

  it("are refunded if refused, even if Redis is too busy to respond within the usual deadline", async () => {
    const prefix = `c${made++}:`
    // This is the timeout of background calls. Requests have their own timeout.
    const stores = clients.map(({ client }) => redisStore({ client, prefix, denyCacheMs: 0, timeoutMs: 5 }))
    const narrow = policy("narrow--", 10)
    const answers = await Promise.all(
      stores.flatMap((store) =>
        Array.from({ length: 300 }, async (_, i) =>
          store.take([check({ ...PER_USER, limit: 10_000 }, `user-${i % 25}`), check(narrow, "")], 20_000),
        ),
      ),
    )
    expect(answers.flat().filter(({ granted }) => granted)).toHaveLength(10)
    await until("all is given back", async () => (await unitsInCluster(cluster, prefix)) === 20)
  })
})

it("the store reports no remaining units for a counter that was not read, even if the refusal is cached", async () => {
  const prefix = `c${made++}:`
  const { client } = clients[0] as OpenedClient
  const rules = [
    { name: "per-user", limit: 1, window: "1 day", field: "user" },
    { name: "overall", limit: 500, window: "1 day", field: "service" },
  ]
  for (const denyCacheMs of [0, 60_000]) {
    const limiter = createLimiter<{ readonly user: string }>({
      service: `unread-${denyCacheMs}`,
      rules,
      fields: { user: ({ user }) => user },
      store: redisStore({ client, prefix, denyCacheMs }),
      storeTimeoutMs: 20_000,
    })
    const seen: (number | undefined)[][] = []
    for (let i = 0; i < 3; i++) {
      const { checks, policy: binding, remaining } = await limiter.decide({ user: "ann" })
      if (i > 0) expect([binding, remaining]).toEqual(["per-user", 0])
      seen.push(checks.map((each) => each.remaining))
    }
    expect(seen).toEqual([
      [0, 499],
      [0, undefined],
      [0, undefined],
    ])
    await limiter.close()
  }
})

it("the store counts exactly while one of five nodes hands over its slots and leaves the cluster", async () => {
  const { stores, prefix } = open()
  const limit = 2_000
  const users = Array.from({ length: 30 }, (_, i) => `user-${i}`)
  const limiters = stores.map((store) => limiterOn(store, limit, 5_000))
  const load = loadOn(limiters, users)
  await until("it is under load", () => load.ledger.decisions > 2_000)
  await cluster.removeNode(2)
  const atRemoval = load.ledger.decisions
  await until("it goes on", () => load.ledger.decisions > atRemoval + 2_000)
  await load.stop()
  expect(load.ledger.thrown).toEqual([])
  expect(cluster.nodes).toHaveLength(4)
  // Redis may have counted a request although the decision was made without Redis.
  const counted = await unitsInCluster(cluster, prefix)
  expect(counted).toBeGreaterThanOrEqual(admittedIn(load.ledger))
  expect(counted).toBeLessThanOrEqual(admittedIn(load.ledger) + load.ledger.degraded)
  // Every client now counts users whose counters were on the removed node on other nodes.
  for (const limiter of limiters) {
    for (const user of users) {
      await until(`${user} is counted`, async () => !(await limiter.decide({ user })).degraded)
    }
  }
  for (const limiter of limiters) await limiter.close()
})

describe("while a slot is moving to another node", () => {
  const both = [check(PER_USER, "ann"), check(PER_DEVICE, "ann")]

  async function startMove(library: Library) {
    const { client } = clients[LIBRARIES.indexOf(library)] as OpenedClient
    const prefix = `c${made++}:`
    const store = redisStore({ client, prefix, denyCacheMs: 0, timeoutMs: 20_000 })
    const counts = async (...checks: Check[]) => {
      const answer = await store.take(checks)
      return answer?.granted ? answer.checks.map((counted) => counted?.state.current) : "refused"
    }
    // Take once, so that the nodes have loaded the scripts and the store knows their time.
    expect(await counts(...both)).toEqual([1, 1])
    const keys = both.map((each) => keyNamer(prefix)(each))
    return { store, prefix, counts, keys, ...(await startSlotMove(cluster, keys[0] as string)) }
  }

  it.each(librariesInTurn(0))("the store loses no counts at any step: %s", async (library) => {
    const { store, prefix, counts, keys, to, move, finish } = await startMove(library)
    expect(await counts(...both)).toEqual([2, 2])
    await move(keys[0])
    // The node redirects with ASK, both for a key that has moved and for a key that never existed.
    expect(await counts(check(PER_USER, "ann"))).toEqual([3])
    expect(await counts(check(OVERALL, "ann"))).toEqual([1])
    await move(keys[1])
    expect(await counts(...both)).toEqual([4, 3])
    await finish()
    expect(await unitsIn(to, prefix)).toBe(8)
    // MOVED
    expect(await counts(...both)).toEqual([5, 4])
    expect(await unitsInCluster(cluster, prefix)).toBe(10)
    await store.close()
  })

  it.each(librariesInTurn(1))(
    "the store decides a request whose keys are briefly split across both nodes: %s",
    async (library) => {
      const { store, counts, keys, move, finish } = await startMove(library)
      await move(keys[0])
      // TRYAGAIN
      const torn = counts(...both).catch(String)
      await new Promise((resolve) => setTimeout(resolve, 50))
      await finish()
      expect(await torn).toEqual([2, 2])
      await store.close()
    },
  )
})

it("the store leaves no key of the cluster without a TTL", async () => {
  expect(await lastingKeysIn(cluster)).toEqual([])
})

describe("a client that is blocked", () => {
  it("is refused by every process, whichever nodes store the counters", async () => {
    const { stores } = open()
    const rules = [
      { name: "ip", field: "ip", limit: 1_000, window: "1 day" },
      { name: "all", field: "service", limit: 1_000, window: "1 day" },
    ]
    const limiters = stores.map((store) =>
      createLimiter({ store, rules, service: "shop", storeTimeoutMs: 20_000 }),
    )
    const [client, other] = [{ remoteAddress: "192.0.2.7" }, { remoteAddress: "192.0.2.8" }]
    await limiters[0]?.block(client, { for: "1 day" })
    for (const limiter of limiters) {
      // The first decision of a process starts the polling for blocks.
      await limiter.decide(other)
      await until("the block is seen", async () => (await limiter.decide(client)).refusal === "blocked")
    }
    await limiters[0]?.unblock(client)
    for (const limiter of limiters) expect((await limiter.decide(client)).allowed).toBe(true)
    for (const limiter of limiters) await limiter.close()
  })
})
