import { setImmediate as nextTurn } from "node:timers/promises"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { Watchdog } from "./watchdog.ts"

describe("a watchdog", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }))
  afterEach(() => void vi.useRealTimers())

  /** Creates a watchdog, and an array that receives the times at which it fires, in milliseconds from now. */
  function watching() {
    const startMs = performance.now()
    const rings: number[] = []
    const watchdog = new Watchdog(() => rings.push(performance.now() - startMs))
    const watch = (...afterMs: number[]) => {
      for (const ms of afterMs) watchdog.watch(startMs + ms)
    }
    const pass = async (ms: number) => {
      for (let passed = 0; passed < ms; passed++) {
        vi.advanceTimersByTime(1)
        await nextTurn()
      }
    }
    return { watchdog, rings, watch, pass }
  }

  it("fires once at the earliest deadline, regardless of the order in which deadlines are added", async () => {
    const { rings, watch, pass } = watching()
    watch(30, 10, 20)
    expect(vi.getTimerCount()).toBe(1)
    await pass(100)
    expect(rings).toEqual([10])
  })

  it("rounds a deadline up to whole milliseconds, and fires immediately if a deadline has passed", async () => {
    const { rings, watch, pass } = watching()
    watch(10.2)
    await pass(10)
    expect(rings).toEqual([])
    await pass(1)
    expect(rings).toEqual([11])
    watch(-5)
    await pass(1)
    expect(rings).toEqual([11, 12])
  })

  it("sets no timer for a deadline of Infinity", async () => {
    const { rings, watch, pass } = watching()
    watch(Number.POSITIVE_INFINITY)
    expect(vi.getTimerCount()).toBe(0)
    watch(10)
    watch(Number.POSITIVE_INFINITY)
    await pass(20)
    expect(rings).toEqual([10])
  })

  it("fires one event-loop tick after its timer, unless it is stopped before", async () => {
    const { watchdog, rings, watch } = watching()
    watch(10)
    vi.advanceTimersByTime(10)
    expect(rings).toEqual([])
    watchdog.stop()
    await nextTurn()
    expect(rings).toEqual([])
  })
})
