import { type ManualClock, manualClock } from "@sluice/core/testing"
import { afterEach, describe, expect, it } from "vitest"
import { SluiceThrottlerStorage, type ThrottlerStorageOptions } from "./index.ts"

const storages: SluiceThrottlerStorage[] = []
afterEach(async () => {
  for (const storage of storages.splice(0)) await storage.onApplicationShutdown()
})

function opened(): {
  storage: SluiceThrottlerStorage
  clock: ManualClock
} {
  const clock = manualClock()
  const storage = new SluiceThrottlerStorage({ clock, logger: { warn() {}, error() {} } })
  storages.push(storage)
  return { storage, clock }
}

/** Counts hits of a client, and returns those that are refused as their wait in seconds, others as 0. */
async function waits(storage: SluiceThrottlerStorage, hits: number, blockMs: number, key = "ann") {
  const all: number[] = []
  for (let hit = 0; hit < hits; hit++) {
    const { isBlocked, timeToBlockExpire } = await storage.increment(key, 60_000, 2, blockMs, "default")
    expect(isBlocked).toBe(timeToBlockExpire > 0)
    all.push(timeToBlockExpire)
  }
  return all
}

describe("SluiceThrottlerStorage", () => {
  it("counts the hits of a client under a throttler, and refuses those above the limit", async () => {
    const { storage } = opened()
    const hit = (name: string, key = "ann") => storage.increment(key, 60_000, 2, 60_000, name)
    expect(await hit("short")).toMatchObject({ totalHits: 1, isBlocked: false, timeToBlockExpire: 0 })
    expect(await hit("short")).toMatchObject({ totalHits: 2, isBlocked: false, timeToBlockExpire: 0 })
    expect(await hit("short")).toMatchObject({ totalHits: 3, isBlocked: true })
    expect(await hit("long")).toMatchObject({ totalHits: 1, isBlocked: false })
    expect(await hit("short", "bob")).toMatchObject({ totalHits: 1, isBlocked: false })
  })

  it("blocks a client for blockDuration, which hits during the block do not prolong", async () => {
    const { storage, clock } = opened()
    expect(await waits(storage, 3, 600_000)).toEqual([0, 0, 600])
    clock.advance(599_000)
    expect(await waits(storage, 2, 600_000)).toEqual([1, 1])
    clock.advance(1_000)
    expect(await waits(storage, 3, 600_000)).toEqual([0, 0, 600])
  })

  it.each([0, 1_000])(
    "refuses a client beyond a block of %s ms until the limit admits it",
    async (blockMs) => {
      const { storage, clock } = opened()
      const [, , wait = 0] = await waits(storage, 3, blockMs)
      clock.advance((wait - 1) * 1_000)
      expect((await waits(storage, 1, blockMs))[0]).toBeGreaterThan(0)
      clock.advance(1_000 + blockMs)
      expect(await waits(storage, 1, 0)).toEqual([0])
    },
  )

  it.each([
    [0, true],
    [-1, true],
    [1.5, false],
    [Number.POSITIVE_INFINITY, false],
  ])("returns finite numbers for the limit %s", async (limit, isBlocked) => {
    const { storage } = opened()
    for (const blockDuration of [0, 1_000.5]) {
      const hit = await storage.increment(`${blockDuration}`, 999.5, limit, blockDuration, "default")
      expect(hit.isBlocked).toBe(isBlocked)
      expect(Object.values(hit).filter((value) => Number.isNaN(value) || value === Infinity)).toEqual([])
    }
  })

  it("rejects invalid options immediately", () => {
    expect(() => new SluiceThrottlerStorage({ stor: 1 } as ThrottlerStorageOptions)).toThrow("stor")
  })
})
