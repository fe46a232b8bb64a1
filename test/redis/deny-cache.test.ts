import { Redis } from "ioredis"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { SLIDING } from "../../packages/contracts/src/store/asking.ts"
import { algorithmOf } from "../../packages/core/src/algorithms/kinds.ts"
import type { Policy } from "../../packages/core/src/ground/policy.ts"
import type { Check, Store, StoreResult } from "../../packages/core/src/stores/store.ts"
import { redisStore } from "../../packages/redis/src/redis-store.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { startProxy } from "../servers/tcp-proxy.ts"
import { callsBetween, callsOf, keysWithoutTtl, timeOf } from "./counted.ts"

const MONTH: Policy = { ...SLIDING, limit: 5, windowMs: 30 * 24 * 3_600_000 }

const { server } = await redisForTests()
let clients: readonly [Redis, Redis]
let made = 0
beforeAll(async () => {
  clients = [new Redis(server.port, server.host), new Redis(server.port, server.host)]
})
afterAll(async () => {
  expect(await keysWithoutTtl(server)).toEqual([])
  for (const client of clients) client.disconnect()
})

/** Creates the stores of two processes, which share their counters. */
function open(denyCacheMs = 60_000): [Store, Store] {
  const prefix = `${made++}:`
  const [one, other] = clients.map((client) => redisStore({ client, prefix, denyCacheMs, timeoutMs: 20_000 }))
  return [one as Store, other as Store]
}

function check(partition: string, cost = 1, policy = MONTH): Check {
  return { policy, partition, cost, shadow: false }
}

async function ask(store: Store, ...checks: Check[]): Promise<StoreResult> {
  const answer = await store.take(checks)
  if (answer === undefined) throw new Error("the store did not respond")
  return answer
}

async function isGranted(store: Store, ...checks: Check[]): Promise<boolean> {
  return (await ask(store, ...checks)).granted
}

/** Returns the server time at which a refused request would be granted. */
function releaseOf({ nowMs, checks: [counted] }: StoreResult, { policy, cost }: Check): number {
  if (counted === undefined) throw new Error("the refusal does not say what was counted")
  return nowMs + algorithmOf(policy).retryAfterMs(counted.state, policy, cost, nowMs)
}

describe("a client that is refused", () => {
  const names = Array.from({ length: 200 }, (_, i) => `client-${i}`)

  it("causes no Redis commands until its wait ends, and does not affect other clients", async () => {
    const [store] = open()
    for (const name of names) await ask(store, check(name, 5))
    for (const name of names) expect(await isGranted(store, check(name))).toBe(false)
    const before = await callsOf(server)
    for (const name of names) {
      for (let i = 0; i < 10; i++) expect(await isGranted(store, check(name))).toBe(false)
    }
    expect(callsBetween(before, await callsOf(server))).toEqual({})
    expect(await isGranted(store, check("somebody else"))).toBe(true)
  })
})

describe("clients that retry without a pause", () => {
  const SHORT: Policy = { ...MONTH, counter: "sl-300ms", limit: 3, windowMs: 300 }
  const clientCount = 60

  it("are admitted with the first request that they send after each wait ends", async () => {
    const [store] = open()
    const waiting = new Map<string, number>()
    const tooEarly: string[] = []
    const tooLate: string[] = []
    /**
     * Number of requests that only Redis can decide. For each client, these are the granted request and the following
     * ones until a refusal.
     */
    let forRedis = 0
    let releases = 0
    const knock = async (name: string, release: number, earliestMs: number): Promise<void> => {
      const asked = check(name, 1, SHORT)
      const answer = await ask(store, asked)
      if (answer.granted) {
        if (answer.nowMs < release) tooEarly.push(name)
        releases++
        // Repeat the request until it is refused again.
        let next = answer
        for (forRedis++; next.granted; forRedis++) next = await ask(store, asked)
        waiting.set(name, releaseOf(next, asked))
      } else if (earliestMs >= release) tooLate.push(`${name} ${earliestMs - release} ms after its release`)
    }
    for (let i = 0; i < clientCount; i++) waiting.set(`client-${i}`, 0)
    const before = await callsOf(server)
    while (releases < 1_200) {
      // All following requests are decided at this server time or later.
      const earliestMs = await timeOf(server)
      await Promise.all([...waiting].map(([name, release]) => knock(name, release, earliestMs)))
    }
    const { incrby = 0 } = callsBetween(before, await callsOf(server))
    expect(tooEarly).toEqual([])
    expect(tooLate).toEqual([])
    // Redis runs one INCRBY for each request that reaches it. The deny cache refuses all other requests. For each
    // release, one request just before it may also reach Redis, because the cached refusal no longer applies then.
    expect(incrby).toBeLessThanOrEqual(forRedis + releases)
  })

  it("get a wait that is long enough, whether Redis or the cache refuses them", async () => {
    const proxy = await startProxy(server)
    const client = new Redis(proxy.port, proxy.host)
    const store = redisStore({ client, prefix: `${made++}:`, timeoutMs: 20_000 })
    const asked = check("ann")
    await ask(store, check("ann", 5))
    // The request reaches Redis after 30 ms, and its refusal is 30 ms old when the process receives it.
    proxy.delayMs = 30
    const refused = await ask(store, asked)
    proxy.delayMs = 0
    const release = releaseOf(refused, asked)
    const cached = await ask(store, asked)
    const answeredAt = await timeOf(server)
    // By the server's clock, the wait is long enough.
    const { nowMs } = cached
    expect(answeredAt + (releaseOf(cached, asked) - nowMs)).toBeGreaterThanOrEqual(release)
    client.disconnect()
    await proxy.close()
  })
})
