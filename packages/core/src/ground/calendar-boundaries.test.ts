import { describe, expect, it } from "vitest"
import { everyNth, isLongRun } from "../../../../test/test-length.ts"
import { periodsAround } from "./calendar.ts"
import {
  ANCHORS,
  boundariesOf,
  differentZones,
  ODD_ZONES,
  offsetsOf,
  ZONES,
} from "./testing/calendar-model.ts"

const DAYS_MS = 2 * 86_400_000
/** Each call returns four boundaries, so every third call is enough to compare all of them. */
const STEP = 3

describe("every boundary from 2000 to 2040 is computed", () => {
  const zones = differentZones([...everyNth(100, ZONES), ...ODD_ZONES])

  it.each(zones)("in the zone %s", (zone) => {
    const offsets = offsetsOf(zone)
    for (const [per, anchors] of ANCHORS) {
      for (const anchor of anchors) {
        const boundaries = boundariesOf(per, anchor, offsets)
        const isNearChange = (ms: number) => offsets.some(({ fromMs }) => Math.abs(ms - fromMs) < DAYS_MS)
        for (let i = 1; i < boundaries.length - 2; i += STEP) {
          const [startMs, endMs] = boundaries.slice(i, i + 2) as [number, number]
          // `pnpm test` compares the boundaries near each change of clocks, and a seventh of the others.
          if (!isLongRun && i % 7 !== 0 && !isNearChange(startMs) && !isNearChange(endMs)) continue
          // The first and the last moment of a period are in turn.
          const nowMs = i % 2 === 0 ? startMs : endMs - 1
          const periods = periodsAround(per, anchor, zone, nowMs)
          if (String(periods) === String(boundaries.slice(i - 1, i + 3))) continue
          expect([per, anchor, nowMs, periods]).toEqual([per, anchor, nowMs, boundaries.slice(i - 1, i + 3)])
        }
      }
    }
  })

  const count = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)
  it.each([
    ["week", count(1, 7)],
    ["month", count(1, 31)],
    ["year", count(1, 12).flatMap((month) => [1, 15, 28, 29, 30, 31].map((day) => 100 * month + day))],
  ] as const)("for every anchor of a %s", (per, anchors) => {
    for (const anchor of anchors) {
      const boundaries = boundariesOf(per, anchor, offsetsOf("UTC"))
      for (let i = 1; i < boundaries.length - 2; i++) {
        const expected = boundaries.slice(i - 1, i + 3)
        const [, startMs = 0, endMs = 0] = expected
        for (const nowMs of [startMs, endMs - 1]) {
          const periods = periodsAround(per, anchor, "UTC", nowMs)
          if (String(periods) !== String(expected))
            expect([anchor, nowMs, periods]).toEqual([anchor, nowMs, expected])
        }
      }
    }
  })
})
