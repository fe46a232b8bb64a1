import { createLimiter, type Decision, type Limiter, memoryStore, type Rule } from "@sluice/core"
import type { RateRule } from "@sluice/core/adapters"
import { redisStore } from "@sluice/redis"
import { describe, expect, it } from "vitest"
import { manualClock } from "../../packages/core/src/ground/manual-clock.ts"
import { clusterForTests } from "./cluster-for-tests.ts"
import { compactStore } from "./compact-store.ts"
import type { OpenedClient } from "./open-client.ts"

const { clients } = await clusterForTests({ primaries: 3 }, ["ioredis 6"])
const [opened] = clients as [OpenedClient]
let made = 0

const MINUTE = 60_000
/** The start of a window and also of a sub-window. */
const EDGE_MS = Date.UTC(2024, 0, 1)
const PER_USER: RateRule = { name: "per-user", field: "user", limit: 10, window: MINUTE }
/** The whole-service counter is in another slot, which the store calls second. */
const OVERALL: Rule = { name: "overall", field: "service", limit: 1_000, window: MINUTE }
const REQUEST = { user: "ann" }
type Request = typeof REQUEST

const EACH: readonly Partial<RateRule>[] = [
  { algorithm: "sliding-window" },
  { algorithm: "sliding-window", buckets: 60 },
  { algorithm: "sliding-window-strict" },
  { algorithm: "sliding-log" },
  { algorithm: "fixed-window" },
  { algorithm: "fixed-window", align: "first-hit" },
  { algorithm: "token-bucket" },
  { algorithm: "token-bucket", refill: "periodic" },
  { algorithm: "leaky-bucket", throttle: "hard" },
]

/**
 * Creates one limiter on the cluster and another in memory. The cluster's clock can advance by 1 ms with each call to
 * a slot.
 */
function open(more: Partial<RateRule>) {
  const rules = [{ ...PER_USER, ...more }, OVERALL]
  const [clock, twinClock] = [manualClock(), manualClock()]
  let asked = 0
  let goesOn = false
  const now = () => {
    const nowMs = clock.now()
    if (goesOn) clock.advance(1)
    asked++
    return nowMs
  }
  const { client } = opened
  const prefix = `r${made++}:`
  const options = { rules, service: "shop", fields: { user: ({ user }: Request) => user } }
  const store = redisStore({ client, prefix, clock: { now }, denyCacheMs: 0, timeoutMs: 20_000 })
  const limiter = createLimiter<Request>({ ...options, store, storeTimeoutMs: 20_000 })
  const twin = createLimiter<Request>({ ...options, store: memoryStore({ clock: twinClock }) })
  /** Runs `work` with both limiters at the same instant. */
  const both = async <Value>(atMs: number, work: (one: Limiter<Request>, i: 0 | 1) => Promise<Value>) => {
    clock.set(atMs)
    twinClock.set(atMs)
    return { here: await work(limiter, 0), there: await work(twin, 1) }
  }
  /**
   * Takes five units from both limiters. On the cluster, the second slot is called 1 ms later. Returns the number of
   * slots that were called.
   */
  const takeInTurn = async (atMs: number) => {
    asked = 0
    goesOn = true
    const taken = await both(atMs, (one) => one.decide(REQUEST, { cost: 5 }))
    goesOn = false
    return { ...taken, asked }
  }
  const close = () => Promise.all([limiter.close(), twin.close(), store.close()])
  return { both, takeInTurn, close }
}

function countsOf({ allowed, checks }: Decision): unknown {
  return { allowed, counts: { parts: "", ...checks[0]?.counts } }
}

describe("units that one slot counts before the end of a window and another slot after it", () => {
  /** Ways to refund or settle the first decision after five more units were taken. */
  const LATER: readonly { readonly what: string; readonly used?: number }[] = [
    { what: "are refunded to the earlier window" },
    { what: "are partly refunded to the earlier window if fewer units were used", used: 2 },
    { what: "are charged to the earlier window if more units were used", used: 7 },
  ]

  for (const { what, used } of LATER) {
    it.each(EACH)(`${what}: $algorithm $buckets $align $refill`, async (more) => {
      const { both, takeInTurn, close } = open(more)
      // Peek first, because the first reply makes the limiter read the blocks of the service. Those reads must not be
      // counted here.
      for (let i = 0; i < 2; i++) await both(EDGE_MS - 1, (one) => one.peek(REQUEST))
      const first = await takeInTurn(EDGE_MS - 1)
      expect([first.asked, first.here.allowed, first.there.allowed]).toEqual([2, true, true])
      await takeInTurn(EDGE_MS + 1)
      await both(EDGE_MS + 3, async (one, i) => {
        const decision = [first.here, first.there][i] as Decision
        await (used === undefined ? one.refund(decision) : one.settle(decision, used))
      })
      const laterMs = [4, 999, 1_000, 30_000, MINUTE - 1, MINUTE, MINUTE + 1_000, 2 * MINUTE]
      for (const afterMs of laterMs) {
        const { here, there } = await both(EDGE_MS + afterMs, (one) => one.peek(REQUEST))
        expect([afterMs, countsOf(here)]).toEqual([afterMs, countsOf(there)])
      }
      await close()
    })
  }

  it("do not distort the state of a strict window's hash in the next sub-window", async () => {
    const clock = manualClock(EDGE_MS)
    let goesOn = false
    const now = () => {
      const nowMs = clock.now()
      if (goesOn) clock.advance(1)
      return nowMs
    }
    const prefix = `h${made++}:`
    // With an app's own clock, a store of the redisStore function would use a string instead of a hash.
    const store = compactStore(opened.client, { now }, { prefix })
    const rules = [{ ...PER_USER, limit: 100, algorithm: "sliding-window-strict" } as const, OVERALL]
    const options = { rules, service: "shop", fields: { user: ({ user }: Request) => user } }
    const limiter = createLimiter<Request>({ ...options, store, storeTimeoutMs: 20_000 })
    const twinClock = manualClock(EDGE_MS)
    const twin = createLimiter<Request>({ ...options, store: memoryStore({ clock: twinClock }) })
    const told = ({ checks }: Decision) =>
      checks.map(({ remaining, resetAfterMs, nextUnitAfterMs }) => ({
        remaining,
        resetAfterMs,
        nextUnitAfterMs,
      }))
    for (const [atMs, cost] of [
      [0, 50],
      [59_000, 1],
    ] as const) {
      clock.set(EDGE_MS + atMs)
      twinClock.set(EDGE_MS + atMs)
      await limiter.decide(REQUEST, { cost })
      await twin.decide(REQUEST, { cost })
    }
    clock.set(EDGE_MS + 60_999)
    twinClock.set(EDGE_MS + 60_999)
    await twin.decide(REQUEST)
    twinClock.advance(1)
    const expected = await twin.peek(REQUEST)
    goesOn = true
    const decision = await limiter.decide(REQUEST)
    expect(decision.checks[0]?.remaining).toBe(98)
    expect(told(decision)[0]).toEqual(told(expected)[0])
    await Promise.all([limiter.close(), twin.close()])
    store.close()
  })
})
