import fc from "fast-check"
import { afterEach, describe, expect, it, vi } from "vitest"
import { manualClock } from "../packages/core/src/ground/manual-clock.ts"
import { memoryStore } from "../packages/core/src/stores/memory/memory-store.ts"
import { logTraces } from "./log-traces.ts"
import { LONG_LOG_CASES, type LongLog, MOST_DIGITS } from "./long-log.ts"
import { playLog } from "./naive-log.ts"

describe("the sliding log in memory", () => {
  it("matches a reference that stores the time of every unit", async () => {
    await fc.assert(
      fc.asyncProperty(logTraces(), async (trace) => {
        const clock = manualClock(trace.startMs)
        const store = memoryStore({ clock })
        await playLog(trace, store, clock)
      }),
      { seed: 8_101, numRuns: 300 },
    )
  })
})

describe("a log of 1,000 entries in memory", () => {
  afterEach(() => {
    vi.restoreAllMocks()
  })

  it.each(LONG_LOG_CASES)("reads only a few entries when it $name", async ({ policy, act }) => {
    const clock = manualClock()
    const store = memoryStore({ clock })
    const log: LongLog = {
      clock,
      take: (under) => store.take([{ policy: under, partition: "alice", cost: 1, shadow: false }]),
      refund: (under, units, after) => store.refund([{ policy: under, partition: "alice", units, after }]),
    }
    await act(log, policy, async (work) => {
      const read = vi.spyOn(String.prototype, "charCodeAt")
      await work()
      const digits = read.mock.calls.length
      read.mockRestore()
      expect(digits).toBeGreaterThan(0)
      expect(digits).toBeLessThan(MOST_DIGITS)
    })
  })
})
