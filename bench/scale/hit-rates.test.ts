import { expect, it } from "vitest"
import { redisForTests } from "../../test/servers/redis-for-tests.ts"
import { type HitRate, measureHitRates } from "./hit-rates.ts"

const TRAFFIC = { limit: 1_000, tables: [100, 10_000], warmUpMs: 120, forMs: 80, seed: 60_901 }

const { server } = await redisForTests()

it("measureHitRates counts the decisions that each store makes without a call", async () => {
  const rates = await measureHitRates(server, { ...TRAFFIC, clients: 2_000 })
  const [redis, leased, small, large] = rates as readonly [HitRate, HitRate, HitRate, HitRate]
  // No client reaches its limit, so no refusal is cached and Redis decides each request. The five requests of a
  // millisecond share a batch, which is one call.
  expect(redis).toMatchObject({ hits: 0, waited: 1, admitted: 1, calls: 0.2 })
  // The first client sends an eighth of the requests. The first client gets a lease, and clients with few requests do
  // not.
  expect(leased.hits).toBeGreaterThan(0.1)
  expect(leased.hits).toBeLessThan(0.7)
  expect(leased.waited).toBeCloseTo(1 - leased.hits, 2)
  // With write-back no request waits, and a larger table remembers more clients.
  for (const one of [small, large]) expect(one).toMatchObject({ waited: 0, admitted: 1 })
  expect(large.hits).toBeGreaterThan(leased.hits)
  expect(large.hits).toBeGreaterThan(small.hits)
  expect(large.hits).toBeLessThan(0.9)
})

it("measureHitRates counts a repeated refusal as a hit for every store", async () => {
  const rates = await measureHitRates(server, { ...TRAFFIC, clients: 1, warmUpMs: 210 })
  expect(rates).toHaveLength(4)
  for (const { hits, admitted } of rates) {
    expect(admitted).toBe(0)
    expect(hits).toBeGreaterThan(0.9)
  }
})
