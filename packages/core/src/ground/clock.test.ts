import { describe, expect, it, vi } from "vitest"
import { LATEST_MS, soundTime, steadyClock } from "./clock.ts"

describe("the steady clock", () => {
  it("returns the system time in epoch milliseconds", () => {
    // Allow a difference of a minute, because the system may have adjusted its clock since the process started.
    expect(Math.abs(steadyClock.now() - Date.now())).toBeLessThan(60_000)
  })

  it("never goes back", () => {
    let last = 0
    for (let i = 0; i < 10_000; i++) {
      const now = steadyClock.now()
      expect(now).toBeGreaterThanOrEqual(last)
      last = now
    }
  })

  it("does not jump when the system clock is changed", () => {
    const real = Date.now
    const before = steadyClock.now()
    try {
      Date.now = () => 0
      expect(steadyClock.now()).toBeGreaterThanOrEqual(before)
    } finally {
      Date.now = real
    }
  })
})

describe("the steady clock in a test with fake timers", () => {
  it("follows the fake timers, with or without a fake Date, and returns the real time afterwards", () => {
    for (const toFake of [undefined, ["setTimeout", "performance"] as const]) {
      vi.useFakeTimers(toFake && { toFake: [...toFake] })
      const before = steadyClock.now()
      vi.advanceTimersByTime(3_600_000)
      expect(steadyClock.now() - before).toBe(3_600_000)
      vi.useRealTimers()
      expect(Math.abs(steadyClock.now() - Date.now())).toBeLessThan(60_000)
    }
  })

  it.each(["1969-12-31T23:59:59Z", "2200-01-01T00:00:00Z"])(
    "returns the real time if no store accepts the fake date: %s",
    (date) => {
      vi.useFakeTimers({ toFake: ["Date"], now: new Date(date) })
      try {
        const before = steadyClock.now()
        expect(Math.abs(before - performance.timeOrigin - performance.now())).toBeLessThan(60_000)
        expect(steadyClock.now()).toBeGreaterThanOrEqual(before)
      } finally {
        vi.useRealTimers()
      }
    },
  )
})

describe("soundTime()", () => {
  it("returns the clock's time if it is a valid epoch time", () => {
    for (const ms of [0, 5.5, LATEST_MS]) expect(soundTime({ now: () => ms })).toBe(ms)
  })

  it.each<[string, () => number]>([
    ["NaN", () => Number.NaN],
    ["-1", () => -1],
    ["Infinity", () => Number.POSITIVE_INFINITY],
    ["microseconds", () => Date.UTC(2024) * 1_000],
    ["a time just too late", () => LATEST_MS + 1],
    ["a bigint", () => 5n as unknown as number],
    ["a string", () => "5" as unknown as number],
    [
      "an error",
      () => {
        throw new Error("broken")
      },
    ],
  ])("returns the steady clock's time if the given clock produces %s", (_what, now) => {
    const before = steadyClock.now()
    const ms = soundTime({ now })
    expect(ms).toBeGreaterThanOrEqual(before)
    expect(ms).toBeLessThanOrEqual(steadyClock.now())
  })
})
