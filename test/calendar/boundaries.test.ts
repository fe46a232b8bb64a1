import type { Decision } from "@sluice/core"
import { describe, expect, it } from "vitest"
import type { CalendarPeriod } from "../../packages/core/src/ground/calendar.ts"
import {
  ANCHORS,
  boundariesOf,
  differentZones,
  ODD_ZONES,
  offsetsOf,
  ZONES,
} from "../../packages/core/src/ground/testing/calendar-model.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { everyNth, isLongRun } from "../test-length.ts"
import { type OpenStore, storesOn, worldOf } from "./opened.ts"

const { client } = await redisForTests()
const ANN = { account: "ann" }
const DAYS_MS = 2 * 86_400_000

/** Returns the anchor as a rule contains it. */
function anchorMember(per: CalendarPeriod, anchor: number): { readonly anchor?: number | string } {
  if (per === "day") return {}
  const digits = String(anchor).padStart(4, "0")
  return { anchor: per === "year" ? `${digits.slice(0, 2)}-${digits.slice(2)}` : anchor }
}

/** The members of a decision that depend on the period. */
function summary({ allowed, remaining, retryAfterMs, resetAfterMs }: Decision) {
  return { allowed, remaining, retryAfterMs, resetAfterMs }
}

/** Uses up a period in its last millisecond, and asks again in the first one of the next period. */
async function walk(open: OpenStore, zone: string, per: CalendarPeriod, anchor: number): Promise<number> {
  const offsets = offsetsOf(zone)
  const boundaries = boundariesOf(per, anchor, offsets)
  const rule = { limit: 2, per, timeZone: zone, ...anchorMember(per, anchor) }
  const { clock, start } = worldOf(open, rule, "2000-01-01")
  const limiter = start()
  let compared = 0
  for (let i = 3; i < boundaries.length - 3; i++) {
    const [atMs, endMs] = boundaries.slice(i, i + 2) as [number, number]
    const isNearChange = offsets.some(({ fromMs }) => Math.abs(atMs - fromMs) < DAYS_MS)
    // Most boundaries are alike. All are compared in packages/core/src/ground/calendar-boundaries.test.ts.
    if (i % 40 !== 4 && !(isNearChange && (isLongRun || i % 16 === 0))) continue
    clock.set(atMs - 1)
    const { remaining } = await limiter.peek(ANN)
    const last = await limiter.decide(ANN, { cost: remaining })
    const refused = await limiter.decide(ANN)
    clock.set(atMs)
    const first = await limiter.decide(ANN)
    const told = [last, refused, first].map(summary)
    const expected = [
      { allowed: true, remaining: 0, retryAfterMs: 0, resetAfterMs: 1 },
      { allowed: false, remaining: 0, retryAfterMs: 1, resetAfterMs: 1 },
      { allowed: true, remaining: 1, retryAfterMs: 0, resetAfterMs: endMs - atMs },
    ]
    if (JSON.stringify(told) !== JSON.stringify(expected))
      expect([zone, per, anchor, atMs, told]).toEqual([zone, per, anchor, atMs, expected])
    compared++
  }
  await limiter.close()
  return compared
}

// Redis receives the boundaries as numbers, and knows no zones. So a few zones are enough there.
describe.each(storesOn(client))(
  "at every boundary from 2000 to 2040, a limiter that counts in %s",
  (name, open) => {
    const zones = name === "memory" ? everyNth(200, ZONES) : ZONES.filter((_, i) => isLongRun && i % 40 === 0)

    it.each(differentZones([...zones, ...everyNth(3, ODD_ZONES)]))(
      "admits the whole limit again, and reports exact waits, in %s",
      { timeout: 900_000 },
      async (zone) => {
        const compared = await Promise.all(
          ANCHORS.flatMap(([per, anchors]) => anchors.map((anchor) => walk(open, zone, per, anchor))),
        )
        expect(Math.min(...compared)).toBeGreaterThan(0)
      },
    )
  },
)
