import { describe, expect, it, vi } from "vitest"
import { manualClock } from "./manual-clock.ts"

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

  it("moves by a duration that is a string", () => {
    const clock = manualClock(1_000)
    clock.advance("1.5 minutes")
    expect(clock.now()).toBe(91_000)
  })

  it.each([Number.POSITIVE_INFINITY, Number.NaN, "1 month"])(
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
