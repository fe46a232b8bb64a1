import { getEventListeners } from "node:events"
import { afterEach, describe, expect, it, vi } from "vitest"
import { steadyClock } from "./clock.ts"
import { countHeldTimers } from "./testing/held-timers.ts"
import { waitOf } from "./time.ts"

const waitHeld = waitOf(steadyClock, true)
const waitUnheld = waitOf(steadyClock)

/**
 * Expects that a wait adds this number of timers that keep the process alive. When the wait is aborted, the timers must
 * be cleared.
 */
async function expectHeld(wait: typeof waitHeld, held: number, timers: () => number): Promise<void> {
  const aborting = new AbortController()
  const before = timers()
  const waiting = wait(60_000, aborting.signal)
  expect(timers() - before).toBe(held)
  aborting.abort(new Error("enough"))
  await expect(waiting).rejects.toThrow("enough")
  expect(timers()).toBe(before)
}

describe("a wait that uses a timer", () => {
  it.each([
    ["keeps the process alive", waitHeld, 1],
    ["does not keep the process alive", waitUnheld, 0],
  ])("%s while it lasts", (_what, wait, held) =>
    countHeldTimers(async (timers) => {
      await expectHeld(wait, held, timers)
      await expect(waitHeld(1)).resolves.toBeUndefined()
    }),
  )

  it("keeps the process alive only if the caller requests that, even if a tool has replaced setTimeout", () =>
    countHeldTimers(async (timers) => {
      const real = globalThis.setTimeout
      // Replace setTimeout by another function that sets Node's own timer, as a tool that counts timers does.
      globalThis.setTimeout = ((...args: Parameters<typeof setTimeout>) => real(...args)) as typeof setTimeout
      try {
        await expectHeld(waitHeld, 1, timers)
        await expectHeld(waitUnheld, 0, timers)
      } finally {
        globalThis.setTimeout = real
      }
    }))
})

describe("a wait in a test with fake timers", () => {
  afterEach(() => void vi.useRealTimers())

  it("ends only when the fake timers have advanced by the full wait", async () => {
    vi.useFakeTimers()
    const { signal } = new AbortController()
    const ended: number[] = []
    for (const ms of [100, 50]) {
      void waitUnheld(ms, ms === 50 ? signal : undefined).then(() => ended.push(ms))
    }
    await vi.advanceTimersByTimeAsync(49)
    expect(ended).toEqual([])
    await vi.advanceTimersByTimeAsync(1)
    expect(ended).toEqual([50])
    expect(getEventListeners(signal, "abort")).toEqual([])
    await vi.advanceTimersByTimeAsync(50)
    expect(ended).toEqual([50, 100])
  })

  it("rejects with the signal's reason if aborted before or during the wait, and leaves no timer", async () => {
    vi.useFakeTimers()
    const aborting = new AbortController()
    const waiting = waitUnheld(100, aborting.signal)
    aborting.abort(new Error("enough"))
    await expect(waiting).rejects.toThrow("enough")
    await expect(waitUnheld(100, aborting.signal)).rejects.toThrow("enough")
    expect(vi.getTimerCount()).toBe(0)
  })
})
