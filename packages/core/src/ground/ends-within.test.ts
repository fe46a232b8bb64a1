import { setImmediate as nextTurn } from "node:timers/promises"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { endedWithin, endsWithin } from "./time.ts"

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }))
afterEach(() => void vi.useRealTimers())

const never = new Promise<void>(() => undefined)
const after = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms))
const failing = (): Promise<void> => Promise.reject(new Error("gone"))

/** Writes down what comes of it. */
function outcomeOf(promise: Promise<boolean>): unknown[] {
  const outcome: unknown[] = []
  promise.then(
    (value) => outcome.push(value),
    (error: Error) => outcome.push(error.message),
  )
  return outcome
}

describe("whether work ends in time", () => {
  it("is told as soon as it does, or its time is over", async () => {
    const [inTime, late] = [outcomeOf(endsWithin(10, after(9))), outcomeOf(endsWithin(10, never))]
    await vi.advanceTimersByTimeAsync(9)
    expect([inTime, late]).toEqual([[true], []])
    vi.advanceTimersByTime(1)
    // What has arrived is read first.
    expect(late).toEqual([])
    await nextTurn()
    expect(late).toEqual([false])
  })

  it("is told only when it has ended, by who has to know that it has", async () => {
    const [inTime, late] = [outcomeOf(endedWithin(10, after(9))), outcomeOf(endedWithin(10, after(20)))]
    await vi.advanceTimersByTimeAsync(19)
    expect([inTime, late]).toEqual([[true], []])
    await vi.advanceTimersByTimeAsync(1)
    expect([inTime, late]).toEqual([[true], [false]])
  })

  it("is an error where the work fails, and leaves no timer behind", async () => {
    const outcomes = [outcomeOf(endsWithin(10, failing())), outcomeOf(endedWithin(10, failing()))]
    await vi.advanceTimersByTimeAsync(0)
    expect(outcomes).toEqual([["gone"], ["gone"]])
    expect(vi.getTimerCount()).toBe(0)
  })
})
