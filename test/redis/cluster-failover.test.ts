import { expect, it } from "vitest"
import { redisStore } from "../../packages/redis/src/redis-store.ts"
import type { RedisServer } from "../servers/redis-server.ts"
import { until } from "../servers/until.ts"
import { clusterForTests } from "./cluster-for-tests.ts"
import { admittedIn, lastingKeysIn, limiterOn, loadOn, primariesOf, unitsInCluster } from "./cluster-load.ts"
import { unitsIn } from "./counted.ts"
import { LIBRARIES } from "./open-client.ts"

const { cluster, clients } = await clusterForTests({ primaries: 3, replicas: 1 })
let made = 0

function open(storeTimeoutMs: number) {
  const prefix = `f${made++}:`
  const limiters = clients.map(({ client }) =>
    limiterOn(redisStore({ client, prefix, denyCacheMs: 0 }), LIMIT, storeTimeoutMs),
  )
  return { prefix, limiters }
}

const USERS = Array.from({ length: 12 }, (_, i) => `user-${i}`)
const LIMIT = 500
const ALL = USERS.length * LIMIT
/**
 * The most units that can be in flight to one primary: the number of clients times calls per client times requests per
 * call.
 */
const IN_FLIGHT = LIBRARIES.length * 4 * 64

it("a cluster counts exactly during a coordinated failover", async () => {
  const { prefix, limiters } = open(20_000)
  const users = [...USERS]
  const load = loadOn(limiters, users)
  await until("it is under load", () => admittedIn(load.ledger) > ALL / 10)
  // Keep adding users, so that some have units left until the failover is over, however long it takes.
  const more = setInterval(() => {
    if (admittedIn(load.ledger) > (users.length - 3) * LIMIT) users.push(`user-${users.length}`)
  }, 5)
  const promoted = await cluster.failover(0)
  clearInterval(more)
  expect(await primariesOf(cluster)).toContain(promoted)
  const all = users.length * LIMIT
  expect(admittedIn(load.ledger)).toBeLessThan(all)
  await until("all is used", async () => (await unitsInCluster(cluster, prefix)) === all)
  await load.stop()
  const { admitted, degraded, thrown } = load.ledger
  expect(thrown).toEqual([])
  expect(degraded).toBe(0)
  expect([...admitted.values()]).toEqual(users.map(() => LIMIT))
  for (const limiter of limiters) await limiter.close()
})

it("the store never throws when a primary dies and returns, and admits at most the limit plus the lost units", async () => {
  const { prefix, limiters } = open(50)
  const load = loadOn(limiters, USERS)
  const { ledger } = load
  await until("it is under load", () => admittedIn(ledger) > ALL / 10)
  const primaries = await primariesOf(cluster)
  const units = await Promise.all(primaries.map((node) => unitsIn(node, prefix)))
  const fullest = primaries[units.indexOf(Math.max(...units))] as RedisServer
  const told = new Set<string>()
  for (const limiter of limiters) limiter.on("store-error", ({ message }) => void told.add(message))
  await fullest.kill()
  await until("it is missed", () => ledger.degraded > 0)
  await until("it is named", () =>
    [...told].some((message) => message.startsWith(`Redis at 127.0.0.1:${fullest.port} `)),
  )
  await cluster.settled()
  await until("all is used", async () => (await unitsInCluster(cluster, prefix)) === ALL)
  // Wait until the circuit breakers have closed. On a busy machine, a breaker may occasionally open without an
  // outage.
  let { degraded, decisions } = ledger
  await until("of 500 decisions fewer than 50 are degraded", () => {
    if (ledger.decisions < decisions + 500) return false
    const few = ledger.degraded - degraded < 50
    degraded = ledger.degraded
    decisions = ledger.decisions
    return few
  })
  await load.stop()
  expect(ledger.thrown).toEqual([])
  // Redis acknowledges a write before its replicas have received it. So units that were not replicated yet are
  // admitted again.
  const lost = admittedIn(ledger) - ALL
  expect(lost).toBeLessThanOrEqual(IN_FLIGHT)
  for (const units of ledger.admitted.values()) expect(units).toBeLessThanOrEqual(LIMIT + IN_FLIGHT)
  for (const limiter of limiters) await limiter.close()
})

it("the store leaves no key without a TTL after the failovers", async () => {
  expect(await lastingKeysIn(cluster)).toEqual([])
})
