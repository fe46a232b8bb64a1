import { AsyncLocalStorage } from "node:async_hooks"
import { describe, expect, it, vi } from "vitest"
import { countHeldTimers } from "../../ground/testing/held-timers.ts"
import { SpareCapacityMonitor, spareCapacityMonitor } from "./monitor.ts"
import type { LoopSample } from "./spare-capacity.ts"

const CALM: LoopSample = { utilization: 0.1, delayMs: 0 }
const SATURATED: LoopSample = { utilization: 1, delayMs: 0 }

/** Returns a monitor whose time, gauge and timer are controlled by the test. */
function byHand() {
  let nowMs = 1_000
  let sample = CALM
  let call: (() => void) | undefined
  const log: string[] = []
  const monitor = new SpareCapacityMonitor({
    now: () => nowMs,
    openGauge() {
      log.push("gauge on")
      return { sample: () => sample, stop: () => log.push("gauge off") }
    },
    every(ms, callback) {
      log.push(`timer on: ${ms}`)
      call = callback
      return () => {
        log.push("timer off")
        call = undefined
      }
    },
  })
  const pass = (ms: number) => {
    nowMs += ms
  }
  return {
    monitor,
    log,
    pass,
    sampleNow(each: LoopSample) {
      sample = each
      call?.()
    },
    /** Lets this number of intervals pass, each with this sample at its end. */
    samples(times: number, each: LoopSample) {
      for (let i = 0; i < times; i++) {
        pass(250)
        sample = each
        call?.()
      }
    },
  }
}

describe("the monitor of spare capacity", () => {
  it("samples as long as there is at least one lease", () => {
    const { monitor, log } = byHand()
    expect(log).toEqual([])
    const [first, second] = [monitor.lease(), monitor.lease()]
    expect(log.splice(0)).toEqual(["gauge on", "timer on: 250"])
    first()
    // Releasing a lease twice must not release another lease.
    first()
    expect(log).toEqual([])
    second()
    expect(log.splice(0)).toEqual(["timer off", "gauge off"])
    monitor.lease()
    expect(log).toEqual(["gauge on", "timer on: 250"])
  })

  it("reports no spare capacity before a calm second, or without a lease", () => {
    const { monitor, samples } = byHand()
    expect(monitor.isSpare()).toBe(false)
    const release = monitor.lease()
    samples(3, CALM)
    expect(monitor.isSpare()).toBe(false)
    samples(1, CALM)
    expect(monitor.isSpare()).toBe(true)
    release()
    expect(monitor.isSpare()).toBe(false)
    // The earlier result is out of date.
    monitor.lease()
    expect(monitor.isSpare()).toBe(false)
  })

  it("reports no spare capacity from the first sample of a saturated loop until another calm second has passed", () => {
    const { monitor, samples } = byHand()
    monitor.lease()
    samples(4, CALM)
    samples(1, SATURATED)
    expect(monitor.isSpare()).toBe(false)
    samples(3, CALM)
    expect(monitor.isSpare()).toBe(false)
    samples(1, CALM)
    expect(monitor.isSpare()).toBe(true)
  })

  it("reports no spare capacity while the event loop is blocked, even before the next sample", () => {
    const { monitor, samples, pass } = byHand()
    monitor.lease()
    samples(4, CALM)
    pass(349)
    expect(monitor.isSpare()).toBe(true)
    pass(1)
    expect(monitor.isSpare()).toBe(false)
  })

  it.each([0, 40, 99, 100, 700])(
    "stops reporting spare capacity within a second of saturation, whenever it begins, in a loop that is %i ms late",
    (lateMs) => {
      const hardAfterMs: number[] = []
      for (let calmMs = 0; calmMs <= 250; calmMs++) {
        const { monitor, samples, pass, sampleNow } = byHand()
        monitor.lease()
        samples(4, CALM)
        // The loop is saturated from now on. The first interval is still partly calm, and later intervals are not
        // calm at all.
        pass(calmMs)
        let isSpare = true
        for (let sinceMs = 0; sinceMs <= 1_500; sinceMs++) {
          const sinceSampleMs = (calmMs + sinceMs) % (250 + lateMs)
          if (sinceMs > 0 && sinceSampleMs === 0) {
            const busy = calmMs + sinceMs === 250 + lateMs ? sinceMs / (250 + lateMs) : 1
            sampleNow({ utilization: busy, delayMs: lateMs })
          }
          if (isSpare && !monitor.isSpare()) hardAfterMs.push(sinceMs)
          isSpare = monitor.isSpare()
          pass(1)
        }
        expect(isSpare).toBe(false)
      }
      // Spare capacity ends once in each run and does not come back.
      expect(hardAfterMs).toHaveLength(251)
      expect(Math.max(...hardAfterMs)).toBeLessThan(1_000)
    },
  )
})

describe("the monitor of this process", () => {
  it("runs an unreferenced timer while it is leased, and none otherwise", () =>
    countHeldTimers((timers) => {
      const before = timers()
      const release = spareCapacityMonitor.lease()
      // Only resources that keep the process alive are listed.
      expect(timers()).toBe(before)
      expect(spareCapacityMonitor.isSpare()).toBe(false)
      release()
      expect(timers()).toBe(before)
    }))

  it("keeps no reference to the request that starts it, and no timer without a lease", () => {
    const storage = new AsyncLocalStorage<string>()
    const contexts: unknown[] = []
    const timer = setInterval(() => undefined, 1_000)
    const spy = vi.spyOn(globalThis, "setInterval").mockImplementation(() => {
      contexts.push(storage.getStore())
      return timer
    })
    const cleared = vi.spyOn(globalThis, "clearInterval")
    try {
      storage.run("a request", () => spareCapacityMonitor.lease())()
      expect(contexts).toEqual([undefined])
      expect(cleared).toHaveBeenCalledWith(timer)
    } finally {
      spy.mockRestore()
      cleared.mockRestore()
      clearInterval(timer)
    }
  })
})
