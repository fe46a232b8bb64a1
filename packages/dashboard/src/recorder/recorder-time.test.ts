import { AsyncLocalStorage } from "node:async_hooks"
import { afterEach, describe, expect, it, vi } from "vitest"
import { RecorderTime } from "./recorder-time.ts"

const START = 1_750_000_000_000

describe("RecorderTime", () => {
  afterEach(() => void vi.useRealTimers())

  it("reads the clock once in 50 ms, and again afterwards", async () => {
    vi.useFakeTimers()
    let nowMs = START
    const now = vi.fn(() => nowMs)
    const time = new RecorderTime({ now })
    const seconds: number[] = []
    for (let i = 0; i < 5; i++) {
      seconds.push(time.second(), time.second())
      nowMs += 1_000
      await vi.advanceTimersByTimeAsync(i % 2 === 0 ? 49 : 50)
    }
    expect(seconds.map((second) => second - START / 1_000)).toEqual([0, 0, 0, 0, 2, 2, 2, 2, 4, 4])
    expect(now).toHaveBeenCalledTimes(3)
  })

  it("returns whole milliseconds", () => {
    expect(new RecorderTime({ now: () => START + 0.75 }).now()).toBe(START)
  })

  it("keeps no reference to the request that reads it, and no process alive", () => {
    const requests = new AsyncLocalStorage<string>()
    const timer = setTimeout(() => undefined, 0)
    const contexts: unknown[] = []
    const spy = vi.spyOn(globalThis, "setTimeout").mockImplementation(() => {
      contexts.push(requests.getStore())
      return timer
    })
    try {
      requests.run("a request", () => new RecorderTime({ now: () => START }).second())
      expect(contexts).toEqual([undefined])
      expect(timer.hasRef()).toBe(false)
    } finally {
      spy.mockRestore()
      clearTimeout(timer)
    }
  })
})
