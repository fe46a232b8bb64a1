import { Redis } from "ioredis"
import { describe, expect, it, onTestFinished } from "vitest"
import { manualClock } from "../../packages/core/src/ground/manual-clock.ts"
import { createLimiter } from "../../packages/core/src/limiter/create-limiter.ts"
import type { Store } from "../../packages/core/src/stores/store.ts"
import { redisStore } from "../../packages/redis/src/redis-store.ts"
import { leasedStore, mirroredStore, writeBackStore } from "../../packages/scale/src/index.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"

const { server } = await redisForTests()
const ADA = { remoteAddress: "192.0.2.7" }
/** Longer than a denial is cached, a lease is held off, and units are written back later. */
const SOON_MS = 3_000

let services = 0

/** Starts two limiters on one Redis, as two processes have them, with a monthly limit of 1,000. */
function startTwo(inFront: (store: Store) => Store) {
  const clock = manualClock(Date.UTC(2026, 0, 31, 23))
  const service = `granting${services++}`
  return ["one", "other"].map(() => {
    const client = new Redis(server.port, server.host)
    const shared = redisStore({ client, clock, timeoutMs: 10_000 })
    const store = inFront(shared)
    const limiter = createLimiter({
      ...{ service, name: "monthly", field: "ip", limit: 1_000, per: "month" },
      ...{ store, clock, storeTimeoutMs: 10_000 },
    })
    onTestFinished(async () => {
      await limiter.close()
      await store.close()
      await shared.close()
      client.disconnect()
    })
    return { clock, limiter }
  }) as [One, One]
}

interface One {
  readonly clock: ReturnType<typeof manualClock>
  readonly limiter: ReturnType<typeof createLimiter>
}

/** Sends requests until ten are refused in a row. Returns the units that were admitted. */
async function admittedBy({ clock, limiter }: One): Promise<number> {
  let admitted = 0
  for (let refused = 0; refused < 10; ) {
    const { allowed } = await limiter.decide(ADA, { cost: 10 })
    if (allowed) admitted += 10
    else {
      refused++
      clock.advance(SOON_MS)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
  return admitted
}

describe.each<[string, (store: Store) => Store]>([
  ["a Redis store", (store) => store],
  ["a leased store", (store) => leasedStore(store, { leaseMs: 100 })],
])("units that one process grants on %s", (_name, inFront) => {
  it("are admitted by another process, to the unit, until the month ends", async () => {
    const [one, other] = startTwo(inFront)
    expect(await admittedBy(other)).toBe(1_000)
    await one.limiter.grant(ADA, 300)
    expect(await admittedBy(other)).toBe(300)
    const [check] = (await other.limiter.peek(ADA)).checks
    expect(check).toMatchObject({ limit: 1_300, granted: 300, remaining: 0 })
    one.clock.set(Date.UTC(2026, 1, 1))
    expect(await admittedBy(other)).toBe(1_000)
  })
})

it("units that one process grants are admitted by another process that writes back", async () => {
  const [one, other] = startTwo((store) => writeBackStore(store, { settleMs: 100 }))
  await one.limiter.grant(ADA, 5_000)
  expect(await admittedBy(other)).toBeGreaterThanOrEqual(6_000)
  expect((await other.limiter.peek(ADA)).checks[0]).toMatchObject({ limit: 6_000, granted: 5_000 })
})

it("units are granted in every data center, once", async () => {
  const clock = manualClock(Date.UTC(2026, 0, 15))
  const clients = [new Redis(server.port, server.host), new Redis(server.port, server.host)]
  const [near, far] = clients.map((client, i) =>
    redisStore({ client, clock, prefix: `center${i}:`, timeoutMs: 10_000 }),
  ) as [Store, Store]
  const store = mirroredStore({ near, far: { far } })
  const rule = { service: "centers", name: "monthly", field: "ip", limit: 10, per: "month" } as const
  const [here, there] = [store, far].map((each) =>
    createLimiter({ ...rule, store: each, clock, storeTimeoutMs: 10_000 }),
  ) as [One["limiter"], One["limiter"]]
  onTestFinished(async () => {
    await store.close()
    for (const client of clients) client.disconnect()
  })
  await here.grant(ADA, 5)
  for (const limiter of [here, there])
    expect((await limiter.peek(ADA)).checks[0]).toMatchObject({ limit: 15, granted: 5, remaining: 15 })
  await here.decide(ADA, { cost: 10 })
  await store.close()
  const { checks } = await createLimiter({
    ...rule,
    store: redisStore({ client: clients[1] as Redis, clock, prefix: "center1:" }),
    clock,
  }).peek(ADA)
  expect(checks[0]).toMatchObject({ granted: 5, remaining: 5 })
})
