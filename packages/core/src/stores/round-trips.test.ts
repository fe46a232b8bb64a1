import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { RoundTrips } from "./round-trips.ts"

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }))
afterEach(() => void vi.useRealTimers())

describe("RoundTrips", () => {
  it("remembers the latest 64 durations", () => {
    const roundTrips = new RoundTrips()
    expect(roundTrips.recent).toEqual([])
    for (let ms = 1; ms <= 65; ms++) {
      const sentAtMs = performance.now()
      vi.advanceTimersByTime(ms)
      roundTrips.add(sentAtMs)
    }
    expect([...roundTrips.recent].sort((one, other) => one - other)).toEqual(
      Array.from({ length: 64 }, (_, nth) => nth + 2),
    )
  })

  it("ignores replies that arrive after a silence of over a second, but not later replies", () => {
    const roundTrips = new RoundTrips()
    const sentAtMs = [0, 300, 900].map((ms) => performance.now() + ms)
    vi.advanceTimersByTime(1_001)
    for (const ms of sentAtMs) roundTrips.add(ms)
    expect(roundTrips.recent).toEqual([])
    const laterMs = performance.now()
    vi.advanceTimersByTime(1_000)
    roundTrips.add(laterMs)
    expect(roundTrips.recent).toEqual([1_000])
  })
})
