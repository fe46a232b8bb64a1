import { manualClock } from "@sluice/core/testing"
import { afterEach, describe, expect, it, vi } from "vitest"
import { KeptResponses } from "./kept-responses.ts"

describe("KeptResponses", () => {
  afterEach(() => void vi.useRealTimers())

  it("gives equal calls of 100 ms the same response", async () => {
    vi.useFakeTimers()
    const kept = new KeptResponses<number>(undefined)
    let made = 0
    const respond = async () => ++made
    const all = await Promise.all([
      kept.of(["a", 1], respond),
      kept.of(["a", 1], respond),
      kept.of(["a", 2], respond),
    ])
    expect(all).toEqual([1, 1, 2])
    await vi.advanceTimersByTimeAsync(99)
    expect(await kept.of(["a", 1], respond)).toBe(1)
    await vi.advanceTimersByTimeAsync(2)
    expect(await kept.of(["a", 1], respond)).toBe(3)
  })

  it("also forgets a call that has failed", async () => {
    vi.useFakeTimers()
    const kept = new KeptResponses<number>(undefined)
    await expect(kept.of([], () => Promise.reject(new Error("failed")))).rejects.toThrow("failed")
    await vi.advanceTimersByTimeAsync(101)
    expect(await kept.of([], async () => 1)).toBe(1)
  })

  it("with the clock of a test, gives only calls at the same time the same response", async () => {
    const kept = new KeptResponses<number>(manualClock(0))
    let made = 0
    const respond = async () => ++made
    expect(await Promise.all([kept.of([], respond), kept.of([], respond)])).toEqual([1, 1])
    expect(await kept.of([], respond)).toBe(2)
  })
})
