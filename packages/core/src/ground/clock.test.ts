import { describe, expect, it, vi } from "vitest"
import { LATEST_MS, manualClock, soundTime, steadyClock } from "./clock.ts"

describe("a manual clock", () => {
  it("does not change until a test moves it forward or back", () => {
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

  it.each([Number.POSITIVE_INFINITY, Number.NaN, "1 minute"])(
    "rejects an invalid time and does not move: %s",
    (ms) => {
      const clock = manualClock(1_000)
      for (const move of [clock.advance, clock.set, manualClock]) {
        expect(() => move(ms as number)).toThrow(
          /is not a (time|duration); accepted: a finite number of milliseconds/,
        )
      }
      expect(clock.now()).toBe(1_000)
    },
  )

  it("is independent of other manual clocks", () => {
    const [one, other] = [manualClock(), manualClock()]
    one.advance(1)
    expect(other.now()).toBe(one.now() - 1)
  })
})

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

describe("a wait on a manual clock", () => {
  it("ends only when the clock has moved by the full wait", async () => {
    const clock = manualClock(1_000)
    const ended: string[] = []
    const long = clock.wait(100).then(() => ended.push("long"))
    const short = clock.wait(50).then(() => ended.push("short"))
    clock.advance(49)
    await Promise.resolve()
    expect(ended).toEqual([])
    clock.advance(1)
    await short
    expect(ended).toEqual(["short"])
    clock.advance(-500)
    clock.set(1_099)
    await Promise.resolve()
    expect(ended).toEqual(["short"])
    clock.set(1_100)
    await long
    expect(ended).toEqual(["short", "long"])
  })

  it("rejects with the signal's reason if the signal is aborted before or during the wait", async () => {
    const clock = manualClock()
    const aborting = new AbortController()
    const waiting = clock.wait(100, aborting.signal)
    const other = clock.wait(100)
    aborting.abort(new Error("enough"))
    await expect(waiting).rejects.toThrow("enough")
    await expect(clock.wait(1, aborting.signal)).rejects.toThrow("enough")
    clock.advance(100)
    await expect(other).resolves.toBeUndefined()
  })
})

describe("a signal that is passed to a manual clock", () => {
  it("has no listener left after the wait", async () => {
    const clock = manualClock()
    const { signal } = new AbortController()
    const add = vi.spyOn(signal, "addEventListener")
    const remove = vi.spyOn(signal, "removeEventListener")
    const waiting = clock.wait(100, signal)
    clock.advance(100)
    await waiting
    expect(add).toHaveBeenCalledOnce()
    expect(remove).toHaveBeenCalledExactlyOnceWith("abort", add.mock.calls[0]?.[1])
  })
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
