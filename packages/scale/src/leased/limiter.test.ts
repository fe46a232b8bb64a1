import { createLimiter, type Limiter, memoryStore, type Store, StoreUnavailableError } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { describe, expect, it } from "vitest"
import { leasedStore } from "./leased-store.ts"

const LIMIT = 16_000
const QUIET = { warn() {}, error() {} }

/** Creates a limiter with one rule for the whole service, on a leased store. */
function open() {
  const clock = manualClock()
  const shared: Store & { isGone: boolean } = Object.assign(memoryStore({ clock }), {
    isShared: true,
    isGone: false,
  })
  const take = shared.take.bind(shared)
  shared.take = (checks) => {
    if (shared.isGone) throw new StoreUnavailableError("gone")
    return take(checks)
  }
  const store = leasedStore(shared, { clock })
  const limiter = createLimiter({
    ...{ service: "shop", limit: LIMIT, window: "1 minute", algorithm: "fixed-window", field: "service" },
    ...{ store, clock, logger: QUIET },
  })
  return { clock, shared, store, limiter }
}

describe("a limiter on a leased store", () => {
  it("reports how old its counts are, and the remaining units according to this process", async () => {
    const { clock, limiter } = open()
    const first = await limiter.decide({}, { cost: 500 })
    clock.advance(20)
    const second = await limiter.decide({}, { cost: 100 })
    expect([first, second].map(({ remaining, checks }) => [remaining, checks[0]?.ageMs])).toEqual([
      [LIMIT - 500, 0],
      [LIMIT - 600, 20],
    ])
    expect(limiter.status.leases).toMatchObject({ held: 400, granted: 100 })
  })

  it("returns refunded and settled units to the lease", async () => {
    const { limiter } = open()
    await limiter.decide({}, { cost: 500 })
    const [one, other] = [await limiter.decide({}, { cost: 100 }), await limiter.decide({}, { cost: 50 })]
    await limiter.refund(one)
    await limiter.settle(other, 20)
    expect(limiter.status.leases?.held).toBe(480)
    // Units that a request used in addition to its cost are charged in the store.
    const last = await limiter.decide({}, { cost: 10 })
    await limiter.settle(last, 15)
    expect(await limiter.peek({})).toMatchObject({ remaining: LIMIT - 500 - 20 - 15 })
  })

  it("makes refused clients wait at least until the store is asked again", async () => {
    const { clock, limiter } = open()
    await limiter.decide({}, { cost: LIMIT })
    clock.advance(59_997)
    expect(await limiter.decide({})).toMatchObject({
      allowed: false,
      retryAfterMs: 10,
      checks: [{ ageMs: 0 }],
    })
    clock.advance(4)
    expect(await limiter.decide({})).toMatchObject({
      allowed: false,
      retryAfterMs: 6,
      checks: [{ ageMs: 4 }],
    })
    clock.advance(6)
    expect((await limiter.decide({})).allowed).toBe(true)
  })

  it("grants all remaining units, even right after it has refused a larger request", async () => {
    const { limiter } = open()
    await limiter.decide({}, { cost: LIMIT - 7 })
    expect(await limiter.takeUpTo({}, 20)).toMatchObject({ allowed: true, cost: 7 })
  })

  it("still decides during an outage until its leases end, and these decisions are not degraded", async () => {
    const { clock, shared, limiter } = open()
    await limiter.decide({}, { cost: 500 })
    shared.isGone = true
    expect(await limiter.decide({}, { cost: 100 })).toMatchObject({ allowed: true, degraded: false })
    // A request that costs more than the held units needs the store.
    expect(await limiter.decide({}, { cost: 600 })).toMatchObject({ allowed: true, degraded: true })
    clock.advance(1_000)
    await undefined
    await undefined
    expect(await limiter.decide({}, { cost: 100 })).toMatchObject({ allowed: true, degraded: true })
  })

  it("reports a threshold according to the counts of this process", async () => {
    const clock = manualClock()
    const shared = Object.assign(memoryStore({ clock }), { isShared: true })
    const used: number[][] = [[], []]
    const [one, other] = used.map((reports) => {
      const limiter = createLimiter({
        ...{ limit: LIMIT, window: "1 minute", algorithm: "fixed-window", field: "service" },
        ...{ notify: [50], service: "shop", clock, logger: QUIET },
        store: leasedStore(shared, { clock }),
      } as const)
      limiter.on("near-limit", (report) => reports.push(report.used))
      return limiter
    }) as [Limiter, Limiter]
    await one.decide({}, { cost: 500 })
    await other.decide({}, { cost: 7_600 })
    expect(used).toEqual([[], [8_600]])
    // The first process grants from its lease, and does not know the units that the second process has used.
    await one.decide({}, { cost: 1 })
    expect(used[0]).toEqual([])
    await one.decide({}, { cost: 1_000 })
    expect(used[0]).toHaveLength(1)
  })
})
