import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { countHeldTimers } from "../../../core/src/ground/testing/held-timers.ts"
import { Breaker } from "./breaker.ts"

interface Probe {
  resolve(): void
  reject(): void
}

let probes: Probe[]
let breaker: Breaker

beforeEach(() => {
  vi.useFakeTimers()
  probes = []
  const probe = () =>
    new Promise<void>((resolve, reject) => {
      probes.push({ resolve, reject: () => reject(new Error("no answer")) })
    })
  breaker = new Breaker(probe)
})
afterEach(() => {
  vi.useRealTimers()
})

function fail(times: number): void {
  for (let i = 0; i < times; i++) breaker.failed()
}

/** Settles the latest probe, with or without a reply. */
async function end(how: keyof Probe): Promise<void> {
  probes.at(-1)?.[how]()
  await vi.advanceTimersByTimeAsync(0)
}

describe("Breaker", () => {
  it("opens at the fifth failure in a row", () => {
    fail(4)
    expect(breaker.isOpen).toBe(false)
    fail(1)
    expect(breaker.isOpen).toBe(true)
  })

  it("probes the server after 100 ms, and then doubles the delay up to a second", async () => {
    fail(5)
    const distances: number[] = []
    for (let nth = 1; nth <= 6; nth++) {
      let ms = 0
      while (probes.length < nth && ms < 2_000) {
        await vi.advanceTimersByTimeAsync(50)
        ms += 50
      }
      distances.push(ms)
      await end("reject")
    }
    expect(distances).toEqual([100, 200, 400, 800, 1_000, 1_000])
    expect(breaker.isOpen).toBe(true)
  })

  it("has only one probe in flight, even if more calls fail", async () => {
    fail(50)
    await vi.advanceTimersByTimeAsync(60_000)
    fail(50)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(probes).toHaveLength(1)
  })

  it("stays closed if a probe that was sent before it closed fails", async () => {
    fail(5)
    await vi.advanceTimersByTimeAsync(100)
    breaker.succeeded()
    await end("reject")
    await vi.advanceTimersByTimeAsync(10_000)
    expect([breaker.isOpen, probes.length]).toEqual([false, 1])
  })

  it("sends only one probe after it opens again, even if an earlier probe then fails", async () => {
    fail(5)
    await vi.advanceTimersByTimeAsync(100)
    breaker.succeeded()
    fail(5)
    probes[0]?.reject()
    await vi.advanceTimersByTimeAsync(10_000)
    expect([breaker.isOpen, probes.length]).toEqual([true, 2])
    breaker.stop()
  })

  it("closes and leaves no timer when it is stopped", async () => {
    fail(5)
    breaker.stop()
    expect([breaker.isOpen, vi.getTimerCount()]).toEqual([false, 0])
    fail(50)
    expect(breaker.isOpen).toBe(false)
    await vi.advanceTimersByTimeAsync(10_000)
    expect(probes).toHaveLength(0)
  })

  it("does not keep the process alive", () =>
    countHeldTimers((held) => {
      vi.useRealTimers()
      const before = held()
      fail(5)
      expect([breaker.isOpen, held()]).toEqual([true, before])
      breaker.stop()
    }))
})
