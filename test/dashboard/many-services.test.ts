import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { createLimiter, type Limiter } from "@sluice/core"
import { type ActivityBoard, recordActivity } from "@sluice/dashboard"
import { beforeAll, describe, expect, it, onTestFinished } from "vitest"

const SERVICES = 5_000
const MOST_BYTES = 64 * 2 ** 20
/** What a limiter takes that has lost its records. */
const EMPTY_BYTES = 3_000

let limiters: readonly Limiter[]
beforeAll(() => {
  limiters = Array.from({ length: SERVICES }, (_, i) =>
    createLimiter({ service: `service-${i}`, name: "calls", limit: 1, window: "1 hour" }),
  )
})

/** Lets a limiter refuse clients. A cost above the limit needs no counters. */
async function attack(limiter: Limiter | undefined, clients: number): Promise<void> {
  for (let i = 0; i < clients; i++) {
    await limiter?.decide({ remoteAddress: `10.0.${i >> 8}.${i & 255}` }, { cost: 2 })
  }
}

function usedBytes(): number {
  setFlagsFromString("--expose-gc")
  runInNewContext("gc")()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

describe("the records of 5,000 attacked services", () => {
  it("take at most 64 MB, and each service says since when it is recorded", async () => {
    await attack(limiters[0], 1)
    const before = usedBytes()
    const startMs = Date.now()
    const activity = recordActivity(limiters)
    onTestFinished(() => activity.stop())
    for (const limiter of limiters) await attack(limiter, 60)
    const bytes = usedBytes() - before
    expect(bytes).toBeLessThan(MOST_BYTES + SERVICES * EMPTY_BYTES)
    const { services } = await activity.sumsOfAll()
    const kept = services.filter(({ seconds }) => seconds.refused > 0)
    // Otherwise, the bound would lose much more than it has to. The bytes do not show it, because the process may free
    // what other tests have left.
    expect(kept.length).toBeGreaterThan(1_000)
    expect(new Set(kept.map(({ seconds }) => seconds.refused))).toEqual(new Set([60]))
    expect(kept.map(({ service }) => service)).toEqual(
      expect.arrayContaining(limiters.slice(-1_000).map(({ status }) => status.service)),
    )
    const [lost] = activity.overview("service-0").services[0]?.instances ?? []
    const [last] = activity.overview(`service-${SERVICES - 1}`).services[0]?.instances ?? []
    expect(lost?.sinceMs).toBeGreaterThan(startMs)
    expect(last?.sinceMs).toBeLessThan(lost?.sinceMs ?? 0)
  })

  it("are shown by the refusals of each service, as far as they have at most 250 rules", async () => {
    const activity = recordActivity(limiters)
    onTestFinished(() => activity.stop())
    for (const limiter of limiters.slice(0, 600)) await attack(limiter, 1)
    await attack(limiters[700], 2)
    const { services, missing } = activity.overview()
    expect(services).toHaveLength(250)
    expect(missing).toBe("The 4750 services that refuse least are left out.")
    const names = services.map(({ service }) => service)
    expect(names).toEqual([...names].sort())
    expect(names).toContain("service-700")
    expect(activity.overview("service-599")).toMatchObject({ services: [{ rules: [{ refusedClients: 1 }] }] })
    expect(activity.overview("service-599").missing).toBeUndefined()
    expect((await activity.sumsOfAll()).services).toHaveLength(SERVICES)
  })

  it("let requests continue while the overview is made, which contains few refusals of most services", async () => {
    const activity = recordActivity(limiters)
    onTestFinished(() => activity.stop())
    for (const [i, limiter] of limiters.slice(0, 250).entries()) await attack(limiter, i < 10 ? 250 : 10)
    let isDone = false
    let turns = 0
    const turn = (): void => {
      turns++
      if (!isDone) setImmediate(turn)
    }
    turn()
    const { services } = await activity.overviewOfAll()
    isDone = true
    expect(turns).toBeGreaterThan(5)
    const listed = services.map(({ refusals }) => refusals.length)
    expect([listed.filter((length) => length === 200), listed.filter((length) => length === 5)]).toEqual([
      Array(5).fill(200),
      Array(245).fill(5),
    ])
    expect(activity.overview("service-249").services[0]?.refusals).toHaveLength(10)
  })

  it("are shared by the refusals of each service, and the others read that some are missing", async () => {
    const texts: string[] = []
    const board = (own: string[], others: readonly string[]): ActivityBoard => ({
      async exchange(_process, text, isWatching) {
        if (text !== undefined) own.push(text)
        return { isWatched: true, isFull: false, texts: isWatching ? others.slice(-1) : [] }
      },
    })
    const activity = recordActivity(limiters, { shared: board(texts, []) })
    const reader = recordActivity([], { shared: board([], texts) })
    onTestFinished(() => {
      activity.stop()
      reader.stop()
    })
    for (const [i, limiter] of limiters.slice(0, 500).entries())
      await attack(limiter, 2 + (i % 14 === 0 ? 10 : 0))
    await expect.poll(() => texts.length, { timeout: 20_000 }).toBeGreaterThan(0)
    expect(Buffer.byteLength(texts[0] ?? "")).toBeLessThanOrEqual(262_144)
    const { services, missing } = await reader.sumsOfAll()
    expect(missing).toBe("A process has too many rules, so it shares only those that refuse most.")
    expect(services.length).toBeGreaterThan(36)
    expect(services.slice(0, 36).map(({ seconds }) => seconds.refused)).toEqual(Array(36).fill(12))
    const { services: found } = await reader.overviewOfAll("service-14")
    expect(found).toMatchObject([{ service: "service-14", rules: [{ rule: "calls", refusedClients: 12 }] }])
  })
})
