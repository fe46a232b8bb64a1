import { createReplay } from "@sluice/core/replay"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { type WindowLength, windowsOf } from "./window-length.ts"
import { createWindowPeaks, WINDOW_ALGORITHMS } from "./window-peaks.ts"

const WINDOWS_MS = [1_000, 7_000, 60_000, 3_600_000]

const requests = fc
  .array(
    fc.record({
      client: fc.nat(4),
      afterMs: fc.oneof(
        fc.constantFrom(0, 0, 0, 1, 17, 999, 1_000, 1_001, 7_000, 60_000, 120_000, 3_600_000),
        fc.nat(3_000),
        fc.nat(4_000_000),
      ),
    }),
    { maxLength: 120 },
  )
  .map((list) => {
    let atMs = 1_750_000_000_123
    return list.map(({ client, afterMs }) => {
      atMs += afterMs
      return { client, atMs }
    })
  })

const UNNAMED = { text: "", short: "", per: "" }

describe.each(WINDOW_ALGORITHMS)("the peaks of %s", (algorithm) => {
  it("predict the clients that a replay refuses, for every limit", () => {
    fc.assert(
      fc.property(
        requests,
        fc.constantFrom(...WINDOWS_MS),
        fc.integer({ min: 1, max: 12 }),
        (list, windowMs, limit) => {
          const peaks = createWindowPeaks(algorithm, { ms: windowMs, ...UNNAMED })
          const replay = createReplay({ rules: [{ field: "ip", limit, window: windowMs, algorithm }] })
          const refused = new Set<number>()
          for (const { client, atMs } of list) {
            peaks.add(client, atMs)
            if (!replay.offer({ remoteAddress: `192.0.2.${client}`, atMs }).allowed) refused.add(client)
          }
          const predicted = [0, 1, 2, 3, 4].filter((client) => peaks.peakOf(client) > limit)
          expect(predicted).toEqual([...refused].sort())
        },
      ),
      { numRuns: 1_000 },
    )
  })

  it("start from 0 when a number is reused for another client", () => {
    const peaks = createWindowPeaks(algorithm, { ms: 1_000, ...UNNAMED })
    for (let i = 0; i < 5; i++) peaks.add(0, 10_000)
    expect(peaks.peakOf(0)).toBe(5)
    peaks.forget(0)
    expect(peaks.peakOf(0)).toBe(0)
    for (const atMs of [10_001, 10_002, 11_500, 13_000, 20_000]) peaks.add(0, atMs)
    expect(peaks.peakOf(0)).toBe(2)
    peaks.forget(7_000)
    expect(peaks.peakOf(7_000)).toBe(0)
  })

  it("stay correct when many clients and steps enlarge the arrays", () => {
    const peaks = createWindowPeaks(algorithm, { ms: 1_000, ...UNNAMED })
    const limit = 3
    const replay = createReplay({ rules: [{ field: "ip", limit, window: 1_000, algorithm }] })
    const refused = new Set<number>()
    let state = 7
    for (let i = 0; i < 30_000; i++) {
      state = (state * 1_103_515_245 + 12_345) % 2 ** 31
      const client = (state >>> 8) % 3_000
      const atMs = 1_750_000_000_000 + Math.floor(i / 4)
      peaks.add(client, atMs)
      const remoteAddress = `10.0.${client >> 8}.${client & 255}`
      if (!replay.offer({ remoteAddress, atMs }).allowed) refused.add(client)
    }
    expect(refused.size).toBeGreaterThan(10)
    for (let client = 0; client < 3_000; client++)
      expect(peaks.peakOf(client) > limit).toBe(refused.has(client))
  })
})

describe.each(["day", "week", "month", "year"] as const)("the peaks of a calendar %s", (per) => {
  it("predict the clients that a replay refuses, also over a change of clocks", () => {
    const [window] = windowsOf([per], "Europe/Berlin") as [WindowLength]
    const HOUR_MS = 3_600_000
    const steps = fc.array(fc.tuple(fc.nat(2), fc.nat(per === "day" ? 40 : 2_000)), { maxLength: 60 })
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 8 }), (list, limit) => {
        const peaks = createWindowPeaks("sliding-window", window)
        const replay = createReplay({ rules: [{ field: "ip", limit, per, timeZone: "Europe/Berlin" }] })
        const refused = new Set<number>()
        let atMs = Date.UTC(2024, 2, 28)
        for (const [client, hours] of list) {
          atMs += hours % 3 === 0 ? 1 : hours * HOUR_MS
          peaks.add(client, atMs)
          if (!replay.offer({ remoteAddress: `192.0.2.${client}`, atMs }).allowed) refused.add(client)
        }
        expect([0, 1, 2].filter((client) => peaks.peakOf(client) > limit)).toEqual([...refused].sort())
      }),
      { numRuns: 300 },
    )
  })
})
