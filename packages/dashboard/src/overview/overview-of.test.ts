import { createLimiter } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { describe, expect, it } from "vitest"
import { DistinctKeys, SHARED_SEED } from "../recorder/distinct.ts"
import { ActivityRecorder } from "../recorder/recorder.ts"
import { RecorderTime } from "../recorder/recorder-time.ts"
import type { ActivitySnapshot } from "../recorder/snapshot.ts"
import { overviewOf } from "./overview-of.ts"
import { sumsIn } from "./sums-of.ts"

const START = 1_750_000_200_000 // the beginning of a slot
const HOUR = 3_600_000

/** Returns the snapshot of a process that has refused each client once, one a second. */
async function snapshotOf(
  clients: readonly string[],
  startMs = START,
  service = "shop",
): Promise<ActivitySnapshot> {
  const clock = manualClock(startMs)
  const limiter = createLimiter({
    service,
    name: "calls",
    field: "header:x",
    limit: 1,
    window: "1 day",
    clock,
  })
  const recorder = new ActivityRecorder(limiter, new RecorderTime(clock, 0))
  for (const x of clients) {
    await limiter.decide({ headers: { x } }, { cost: 2 })
    clock.advance(1_000)
  }
  return recorder.snapshot()
}

describe("an overview of several processes", () => {
  it("keeps the seconds apart of a process whose clock is ahead", async () => {
    const inTime = await snapshotOf(["a", "b", "c"])
    const nowMs = inTime.atMs
    for (const aheadMs of [10_000, HOUR]) {
      const ahead = await snapshotOf(["a", "d", "e"], START + aheadMs)
      const [rule] = overviewOf([inTime, ahead], nowMs).services[0]?.rules ?? []
      expect(rule?.seconds).toEqual({ refused: [2, 2, 2, 0] })
      expect(rule?.slots).toEqual({ refused: [6] })
      expect(sumsIn(ahead, nowMs)).toMatchObject({ seconds: { refused: 3 }, slots: { refused: 3 } })
    }
  })

  it("moves the counts of an older snapshot back, and leaves out those that are too old", async () => {
    const snapshot = await snapshotOf(["a", "b", "c"])
    const later = (ms: number) => overviewOf([snapshot], snapshot.atMs + ms).services[0]?.rules[0]
    expect(later(2_000)?.seconds).toEqual({ refused: [1, 1, 1, 0, 0, 0] })
    expect(later(298_000)?.seconds.refused).toHaveLength(300)
    expect(sumsIn(snapshot, snapshot.atMs + 298_000).seconds.refused).toBe(1)
    expect(later(400_000)).toMatchObject({ seconds: {}, slots: { refused: [3, 0] } })
    expect(sumsIn(snapshot, snapshot.atMs + 400_000)).toMatchObject({
      ...{ seconds: { refused: 0 }, slots: { refused: 3 } },
    })
  })

  it("cannot be misled about the number of refused clients by chosen keys", async () => {
    const registers = new Uint8Array(1_024)
    const keys = new DistinctKeys(SHARED_SEED, registers)
    const chosen: string[] = []
    for (let i = 0; chosen.length < 300; i++) {
      keys.add(`${i}`)
      if ((registers[7] as number) > 0) chosen.push(`${i}`)
      registers.fill(0)
    }
    for (const key of chosen) keys.add(key)
    expect(keys.size).toBe(1)
    const snapshot = await snapshotOf(chosen)
    for (const [snapshots, most] of [
      [[snapshot], 360],
      [[snapshot, snapshot], 720],
    ] as const) {
      const [rule] = overviewOf(snapshots, snapshot.atMs).services[0]?.rules ?? []
      expect(rule?.refusedClients).toBeGreaterThan(240)
      expect(rule?.refusedClients).toBeLessThan(most)
    }
  })

  it("counts a client once that several processes have refused", async () => {
    const names = (from: number, length: number) => Array.from({ length }, (_, i) => `client-${from + i}`)
    const refusedClients = async (length: number) => {
      const snapshots = [await snapshotOf(names(0, length)), await snapshotOf(names(length / 2, length))]
      return overviewOf(snapshots, START).services[0]?.rules[0]?.refusedClients
    }
    expect(await refusedClients(100)).toBe(150)
    const estimate = await refusedClients(400)
    expect(estimate).toBeGreaterThan(530)
    expect(estimate).toBeLessThan(670)
  })

  it("leaves out an estimate that another program has written", async () => {
    const names = Array.from({ length: 300 }, (_, i) => `client-${i}`)
    const snapshot = await snapshotOf(names)
    const registers = Buffer.alloc(1_024, 255).toString("base64")
    const wrong = { ...snapshot, rules: snapshot.rules.map((rule) => ({ ...rule, registers })) }
    const [rule] = overviewOf([snapshot, wrong], snapshot.atMs).services[0]?.rules ?? []
    expect(rule?.refusedClients).toBeGreaterThan(260)
    expect(rule?.refusedClients).toBeLessThan(340)
  })

  it("sorts services by their names, and keeps the order of rules", async () => {
    const shop = await snapshotOf(["a"])
    const maps = await snapshotOf(["a"], START, "maps")
    const [rule] = shop.rules
    const other = { ...shop, rules: [{ ...shop.rules[0], rule: "first" }, rule] } as ActivitySnapshot
    const { services } = overviewOf([other, maps, shop], START)
    expect(services.map(({ service, rules }) => [service, ...rules.map((each) => each.rule)])).toEqual([
      ["maps", "calls"],
      ["shop", "first", "calls"],
    ])
    expect(services[1]?.rules[1]?.slots).toEqual({ refused: [2] })
  })
})
