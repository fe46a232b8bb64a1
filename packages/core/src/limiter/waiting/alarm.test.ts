import { setImmediate as nextTurn } from "node:timers/promises"
import { expect, it, vi } from "vitest"
import { manualClock } from "../../ground/manual-clock.ts"
import { ignore } from "../../ground/time.ts"
import { callAt } from "./alarm.ts"

const LONGEST_TIMER_MS = 2 ** 31 - 1

it("callAt uses one timer up to the longest possible delay, and two for one millisecond more", async () => {
  for (const [ms, timers] of [
    [LONGEST_TIMER_MS, [LONGEST_TIMER_MS]],
    [LONGEST_TIMER_MS + 1, [LONGEST_TIMER_MS, 1]],
  ] as const) {
    const clock = manualClock()
    const waits: number[] = []
    const wait = (waitMs: number, signal?: AbortSignal) => {
      waits.push(waitMs)
      return clock.wait(waitMs, signal)
    }
    const waiting = { now: () => clock.now(), wait }
    let isOver = false
    const over = () => {
      isOver = true
    }
    callAt(waiting, clock.now() + ms, over, (error) => expect.unreachable(String(error)))
    clock.advance(LONGEST_TIMER_MS)
    await nextTurn()
    expect(isOver).toBe(timers.length === 1)
    clock.advance(1)
    await nextTurn()
    expect([isOver, waits]).toEqual([true, timers])
  }
})

it("callAt uses a real timer if the clock has no wait function", async () => {
  await new Promise<void>((resolve, reject) => {
    callAt({ now: () => 1_000 }, 1_000, resolve, reject)
  })
})

it.each([0, LONGEST_TIMER_MS + 1])(
  "callAt keeps the process alive for %i ms if the clock has no wait function, unless it is canceled",
  (ms) => {
    const setTimer = vi.spyOn(globalThis, "setTimeout")
    const cancel = callAt({ now: () => 1_000 }, 1_000 + ms, ignore, ignore)
    const timers = setTimer.mock.results.map(({ value }) => value as NodeJS.Timeout)
    expect(timers.map((timer) => timer.hasRef())).toEqual([true])
    const clearTimer = vi.spyOn(globalThis, "clearTimeout")
    cancel()
    expect(clearTimer.mock.calls).toEqual([timers])
    setTimer.mockRestore()
    clearTimer.mockRestore()
  },
)
