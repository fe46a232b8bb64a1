import { describe, expect, it } from "vitest"
import { manualClock, steadyClock } from "./clock.ts"

describe("a manual clock", () => {
  it("stands still until it is moved, forwards or back", () => {
    const clock = manualClock(1_000)
    expect([clock.now(), clock.now()]).toEqual([1_000, 1_000])
    clock.advance(500)
    expect(clock.now()).toBe(1_500)
    clock.advance(-700)
    expect(clock.now()).toBe(800)
    clock.set(5)
    expect(clock.now()).toBe(5)
  })

  it.each([
    ["second", 1_000],
    ["minute", 60_000],
    ["hour", 3_600_000],
    ["day", 86_400_000],
  ] as const)("starts at the start of a %s", (_unit, ms) => {
    expect(manualClock().now() % ms).toBe(0)
  })

  it("shares no time with another one", () => {
    const [one, other] = [manualClock(), manualClock()]
    one.advance(1)
    expect(other.now()).toBe(one.now() - 1)
  })
})

describe("the steady clock", () => {
  it("tells the time of the system, in epoch milliseconds", () => {
    // A minute of slack: the system may have adjusted its own clock since the process started.
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

  it("does not follow the system's clock when that is set", () => {
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
